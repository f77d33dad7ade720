"""Running compiled programs: step table, arena, threads, executable, caches, profiler."""
