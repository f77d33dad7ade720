"""Programs with control flow become machine programs: functions of instructions over segments."""
