// A classifier as quantized StableHLO: two dense layers of s8, and a softmax.
!input = !quant.uniform<i8:f32, 0.05:3>
!hidden = !quant.uniform<i8:f32, 0.08:-128>
!score = !quant.uniform<i8:f32, 0.1:7>
!weights1 = !quant.uniform<i8<-127:127>:f32, 0.01>
!weights2 = !quant.uniform<i8<-127:127>:f32:1, {0.01, 0.02, 0.015, 0.01, 0.02, 0.015, 0.01, 0.02, 0.03, 0.01}>
module @mlp {
  func.func public @main(%x: tensor<37x64xf32>, %w1: tensor<64x96xi8>, %w2: tensor<96x10xi8>) -> tensor<37x10xf32> {
    %xq = stablehlo.uniform_quantize %x : (tensor<37x64xf32>) -> tensor<37x64x!input>
    %v1 = stablehlo.bitcast_convert %w1 : (tensor<64x96xi8>) -> tensor<64x96x!weights1>
    %v2 = stablehlo.bitcast_convert %w2 : (tensor<96x10xi8>) -> tensor<96x10x!weights2>
    %h = stablehlo.dot_general %xq, %v1, contracting_dims = [1] x [0] : (tensor<37x64x!input>, tensor<64x96x!weights1>) -> tensor<37x96x!hidden>
    %s = stablehlo.dot_general %h, %v2, contracting_dims = [1] x [0] : (tensor<37x96x!hidden>, tensor<96x10x!weights2>) -> tensor<37x10x!score>
    %f = stablehlo.uniform_dequantize %s : (tensor<37x10x!score>) -> tensor<37x10xf32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%f init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<37x10xf32>, tensor<f32>) -> tensor<37xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<37xf32>) -> tensor<37x10xf32>
    %d = stablehlo.subtract %f, %mb : tensor<37x10xf32>
    %e = stablehlo.exponential %d : tensor<37x10xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<37x10xf32>, tensor<f32>) -> tensor<37xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<37xf32>) -> tensor<37x10xf32>
    %p = stablehlo.divide %e, %tb : tensor<37x10xf32>
    return %p : tensor<37x10xf32>
  }
}
