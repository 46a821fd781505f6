"""Twins of what talks to the world, shipped for whoever tests a program built on mimikit."""
