// Layers of MobileNet and ResNet as quantized StableHLO: a convolution with stride 2, a depthwise one, 1 x 1 convolutions, a residual
// sum, and the mean over all positions.
!image = !quant.uniform<i8:f32, 0.05:-3>
!act = !quant.uniform<i8:f32, 0.1:-128>
!out = !quant.uniform<i8:f32, 0.2:4>
!w = !quant.uniform<i8<-127:127>:f32, 0.02>
!wc = !quant.uniform<i8<-127:127>:f32:3, {0.01, 0.02, 0.015, 0.01, 0.02, 0.015, 0.01, 0.02, 0.01, 0.02, 0.015, 0.01, 0.02, 0.015, 0.01, 0.02}>
module @cnn {
  func.func public @main(%x: tensor<1x33x35x3x!image>, %k1: tensor<3x3x3x16x!wc>, %k2: tensor<3x3x1x16x!wc>,
                         %k3: tensor<1x1x16x16x!wc>, %k4: tensor<1x1x16x32x!w>) -> tensor<1x32xf32> {
    %a = stablehlo.convolution(%x, %k1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x33x35x3x!image>, tensor<3x3x3x16x!wc>) -> tensor<1x17x18x16x!act>
    %b = stablehlo.convolution(%a, %k2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64} : (tensor<1x17x18x16x!act>, tensor<3x3x1x16x!wc>) -> tensor<1x17x18x16x!act>
    %c = stablehlo.convolution(%b, %k3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x17x18x16x!act>, tensor<1x1x16x16x!wc>) -> tensor<1x17x18x16x!act>
    %r = stablehlo.add %a, %c : tensor<1x17x18x16x!act>
    %d = stablehlo.convolution(%r, %k4) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x17x18x16x!act>, tensor<1x1x16x32x!w>) -> tensor<1x17x18x32x!out>
    %f = stablehlo.uniform_dequantize %d : (tensor<1x17x18x32x!out>) -> tensor<1x17x18x32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x17x18x32xf32>, tensor<f32>) -> tensor<1x32xf32>
    return %s : tensor<1x32xf32>
  }
}
