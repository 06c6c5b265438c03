"""Named workloads on a made-up node, played through the event-timeline model. Every number is marked as simulated."""
