"""Contacts with a bristle: steps that keep its bounds."""
