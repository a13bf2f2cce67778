"""Driving: what a vehicle's deadline leaves for a model.

sensors         sensor_data, ranging_data, rare_cases, data_engine (a week of a fleet that learns)
how late        latency_budget, information_age, data_age, messages (between processes), frame_window, closing (cars
                that come nearer)
on a schedule   response_time, tail_samples, fault_times, safety_levels
the network     perception_cost, stage_work, voxel_grids
the chip        datasheet_tops, soc_fit, shared_chip, dla_placement
language        language_loop, slow_fast
the whole book  shares (who made it faster), three_stories (the calls with which it begins)
"""
