"""`threeloops roofline`: is this work limited by arithmetic, by memory traffic, or by launching it?

gemm, whole_model   one matrix product; a forward pass, kernel by kernel
asked               its flags, and from flags to a calculation
"""
