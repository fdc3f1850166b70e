"""Contacts with a bristle: their variables, and steps that keep their bounds."""
