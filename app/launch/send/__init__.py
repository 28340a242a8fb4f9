"""From a launch to a job, exactly once: preview, shipment, submit, settle."""
