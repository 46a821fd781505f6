"""When: trigger definitions, their schedules and conditions."""
