"""The product's two queues on Huey: their storages, their pools, the consumer."""
