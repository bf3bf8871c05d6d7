"""Code around quantisation that module 12 uses: grids, the operators of a graph, and ONNX Runtime's file formats."""
