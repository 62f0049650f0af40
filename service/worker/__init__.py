"""The worker process: owns graphs, keeps their flow states resident, runs their commands."""
