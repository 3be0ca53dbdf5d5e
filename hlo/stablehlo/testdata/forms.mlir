module @forms attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8x3xf32>, %arg2: tensor<i32>) -> (tensor<4x8xf32>, tensor<4x3xf32>) {
    %cst = stablehlo.constant dense<[[1.0, 0x7F800000, -3.5e-1]]> : tensor<1x3xf32>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:2 = stablehlo.while(%i = %c, %x = %2) : tensor<i32>, tensor<4x3xf32>
    cond {
      %5 = stablehlo.compare LT, %i, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %i, %one : tensor<i32>
      %7 = func.call @helper(%x) : (tensor<4x3xf32>) -> tensor<4x3xf32>
      stablehlo.return %6, %7 : tensor<i32>, tensor<4x3xf32>
    }
    %4 = "stablehlo.sort"(%3#1) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %8 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %arg0, %4 : tensor<4x8xf32>, tensor<4x3xf32>
  }
  func.func private @helper(%arg0: tensor<4x3xf32>) -> tensor<4x3xf32> {
    %0 = stablehlo.slice %arg0 [0:4, 0:2:1] : (tensor<4x3xf32>) -> tensor<4x2xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.pad %0, %cst, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x3xf32>
    return %1 : tensor<4x3xf32>
  }
}
