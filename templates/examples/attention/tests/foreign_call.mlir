module @jit_agrees attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x17x8xf32>, %arg1: tensor<2x3x17x8xf32>, %arg2: tensor<2x3x17x8xf32>) -> (tensor<2xi1> {jax.result_info = "result"}) {
    %0 = stablehlo.custom_call @acme_attention(%arg0, %arg1, %arg2) {backend_config = "", mhlo.backend_config = {causal = false, scale = 0.353553385 : f32}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>]} : (tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x8xf32>
    %1 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x17xf32>
    %cst = stablehlo.constant dense<0.353553385> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3x17x17xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x3x17x17xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x17x17xf32>, tensor<f32>) -> tensor<2x3x17xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3x17xf32>
    %6 = stablehlo.maximum %5, %4 : tensor<2x3x17xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<2x3x17xf32>) -> tensor<2x3x17x1xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<2x3x17x1xf32>) -> tensor<2x3x17x17xf32>
    %9 = stablehlo.subtract %3, %8 : tensor<2x3x17x17xf32>
    %10 = stablehlo.exponential %9 : tensor<2x3x17x17xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<2x3x17x17xf32>, tensor<f32>) -> tensor<2x3x17xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x3x17xf32>) -> tensor<2x3x17x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<2x3x17x1xf32>) -> tensor<2x3x17x17xf32>
    %14 = stablehlo.divide %10, %13 : tensor<2x3x17x17xf32>
    %15 = stablehlo.dot_general %14, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x17x17xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x8xf32>
    %16 = stablehlo.subtract %0, %15 : tensor<2x3x17x8xf32>
    %17 = stablehlo.abs %16 : tensor<2x3x17x8xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %18 = stablehlo.reduce(%17 init: %cst_3) applies stablehlo.maximum across dimensions = [0, 1, 2, 3] : (tensor<2x3x17x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_4 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %19 = stablehlo.compare LT, %18, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %20 = stablehlo.custom_call @acme_attention(%arg0, %arg1, %arg2) {backend_config = "", mhlo.backend_config = {causal = true, scale = 0.353553385 : f32}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>]} : (tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x8xf32>
    %21 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x17x8xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x17xf32>
    %cst_5 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3x17x17xf32>
    %23 = stablehlo.multiply %21, %22 : tensor<2x3x17x17xf32>
    %24 = stablehlo.iota dim = 0 : tensor<17x17xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<17x17xi32>
    %26 = stablehlo.add %24, %25 : tensor<17x17xi32>
    %27 = stablehlo.iota dim = 1 : tensor<17x17xi32>
    %28 = stablehlo.compare GE, %26, %27, SIGNED : (tensor<17x17xi32>, tensor<17x17xi32>) -> tensor<17x17xi1>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %29 = call @_where(%28, %23, %cst_6) : (tensor<17x17xi1>, tensor<2x3x17x17xf32>, tensor<f32>) -> tensor<2x3x17x17xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %30 = stablehlo.reduce(%29 init: %cst_7) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x17x17xf32>, tensor<f32>) -> tensor<2x3x17xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x3x17xf32>
    %32 = stablehlo.maximum %31, %30 : tensor<2x3x17xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<2x3x17xf32>) -> tensor<2x3x17x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<2x3x17x1xf32>) -> tensor<2x3x17x17xf32>
    %35 = stablehlo.subtract %29, %34 : tensor<2x3x17x17xf32>
    %36 = stablehlo.exponential %35 : tensor<2x3x17x17xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = stablehlo.reduce(%36 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<2x3x17x17xf32>, tensor<f32>) -> tensor<2x3x17xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2] : (tensor<2x3x17xf32>) -> tensor<2x3x17x1xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1, 2, 3] : (tensor<2x3x17x1xf32>) -> tensor<2x3x17x17xf32>
    %40 = stablehlo.divide %36, %39 : tensor<2x3x17x17xf32>
    %41 = stablehlo.dot_general %40, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x17x17xf32>, tensor<2x3x17x8xf32>) -> tensor<2x3x17x8xf32>
    %42 = stablehlo.subtract %20, %41 : tensor<2x3x17x8xf32>
    %43 = stablehlo.abs %42 : tensor<2x3x17x8xf32>
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.reduce(%43 init: %cst_10) applies stablehlo.maximum across dimensions = [0, 1, 2, 3] : (tensor<2x3x17x8xf32>, tensor<f32>) -> tensor<f32>
    %cst_11 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %45 = stablehlo.compare LT, %44, %cst_11, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %46 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %47 = stablehlo.broadcast_in_dim %45, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %48 = stablehlo.concatenate %46, %47, dim = 0 : (tensor<1xi1>, tensor<1xi1>) -> tensor<2xi1>
    return %48 : tensor<2xi1>
  }
  func.func private @_where(%arg0: tensor<17x17xi1>, %arg1: tensor<2x3x17x17xf32>, %arg2: tensor<f32>) -> tensor<2x3x17x17xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<17x17xi1>) -> tensor<2x3x17x17xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3x17x17xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x3x17x17xi1>, tensor<2x3x17x17xf32>
    return %3 : tensor<2x3x17x17xf32>
  }
}
