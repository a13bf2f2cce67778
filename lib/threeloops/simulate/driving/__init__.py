"""Driving, counted.

a drive         vehicle, closing, scenes (traffic), rays (cameras and a LiDAR), sensors, occupancy_labels, voxel_scenes
moments         picture_age, message_queue, hand_overs, word_clock, slow_fast_clocks, late_frames, picture_changes,
                perception_frames
schedules       task_schedule, heartbeat, tail_draws, rare_draws
chips           chip_sharing, chip_deadlines (who is late), shared_bus, dla_turns, filters (a convolution)
repair_orders   who made it faster
"""
