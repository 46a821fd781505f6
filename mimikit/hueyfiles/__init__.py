"""Huey on plain files, for any Huey program; nothing of mimikit's own work is known here."""
