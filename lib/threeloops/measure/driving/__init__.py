"""Driving, measured: real code on this machine.

the detector    bev_network, bev_training, box_grid, sparse_lift, occupied_cells, temporal_reuse
the chain       pipeline, tracking, planning, frame_path, frame_loop, recorded_drive
messages        message_ways: from one process to another, copied and shared
how good        detection_score, held_out, streaming (at the moment of use)
made faster     faster_network, onnx_engine, engine_pieces, dla_nodes, stage_costs, repair_pairs, neighbour_copies
training        joint_training, checkpointed_stack
"""
