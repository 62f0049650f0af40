"""One module for each kernel file, with one thin function for each kernel: it owns grid, block and argument order.

See the kernels for what they do.
"""
