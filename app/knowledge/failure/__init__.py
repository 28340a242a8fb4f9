"""Why a run failed or hangs: known causes, the first rank, the one that lags."""
