"""The inner loop: is one GPU doing useful math?"""
