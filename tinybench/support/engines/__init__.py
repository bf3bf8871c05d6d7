"""Code around ONNX Runtime that module 11 uses: sessions, conversion, traces, and pipelines in stages."""
