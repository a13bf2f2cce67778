"""The product loop: is the model served on time and at a price?"""
