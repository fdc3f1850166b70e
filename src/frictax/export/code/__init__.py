"""A machine as source code: C, JavaScript and structured text, by one emitter."""
