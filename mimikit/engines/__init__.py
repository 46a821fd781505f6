"""Who thinks: adapters that run one request and give one outcome."""
