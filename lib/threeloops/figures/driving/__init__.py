"""Driving, drawn.

sensors         sensor_chain, camera_strip, birds_eye, frame_way
moments         budget_board, answer_ages, journey, lanes, task_gantt
the chain       chain_frame, encoder_plan, module_chain
chips           brochure_bars, part_roofs
what it brings  price_of_speed, technique_map, credit_bars, symptom_tree
"""
