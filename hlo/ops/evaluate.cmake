# The evaluation of ops. It is a library of its own, so that users of shape inference and verification do not link the
# evaluator.
collet_library(NAME hlo_ops_eval
  SOURCES
    evaluate.cc
    eval/body.cc eval/gemm.cc eval/kernels.cc eval/kernels_complex.cc eval/kernels_int.cc eval/kernels_real.cc
    eval/lanes.cc eval/pack.cc eval/product.cc eval/strided.cc eval/taps.cc
    asynchronous_eval.cc batch_norm_eval.cc collective_eval.cc control_flow_eval.cc convert_eval.cc
    convolution_eval.cc custom_call_eval.cc dot_eval.cc dynamic_shape_eval.cc elementwise_eval.cc fft_eval.cc
    host_io_eval.cc indexing_eval.cc linalg_eval.cc movement_eval.cc reduce_eval.cc rng_eval.cc sort_eval.cc
    structure_eval.cc window_eval.cc
  DEPS hlo_ops
  PUBLIC_DEPS hlo_ir)
