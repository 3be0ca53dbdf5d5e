module {
  // A quantized layer and a softmax.
  func.func @main(%x: tensor<40x64x!quant.uniform<i8:f32, 0.05:3>>, %w: tensor<64x96x!quant.uniform<i8<-127:127>:f32, 0.01>>) -> tensor<40x96xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<40x64x!quant.uniform<i8:f32, 0.05:3>>, tensor<64x96x!quant.uniform<i8<-127:127>:f32, 0.01>>) -> tensor<40x96x!quant.uniform<i8:f32, 0.1:-4>>
    %y = stablehlo.uniform_dequantize %0 : (tensor<40x96x!quant.uniform<i8:f32, 0.1:-4>>) -> tensor<40x96xf32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%y init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<40x96xf32>, tensor<f32>) -> tensor<40xf32>
    %ms = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<40xf32>) -> tensor<40x96xf32>
    %d = stablehlo.subtract %y, %ms : tensor<40x96xf32>
    %e = stablehlo.exponential %d : tensor<40x96xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<40x96xf32>, tensor<f32>) -> tensor<40xf32>
    %ss = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<40xf32>) -> tensor<40x96xf32>
    %p = stablehlo.divide %e, %ss : tensor<40x96xf32>
    return %p : tensor<40x96xf32>
  }
}
