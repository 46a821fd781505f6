"""Huey, and only here: storage, serializer, pools, consumer."""
