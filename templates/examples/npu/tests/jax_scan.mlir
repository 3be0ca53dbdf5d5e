module @jit_classifier attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<20x64xf32>, %arg1: tensor<6x64x64xi8>, %arg2: tensor<6xf32>, %arg3: tensor<6x64xi32>, %arg4: tensor<64x10xi8>, %arg5: tensor<10xf32>, %arg6: tensor<10xi32>) -> (tensor<20x10xf32> {jax.result_info = "result[0]"}, tensor<20xi32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<20x64xf32>
    %cst_0 = stablehlo.constant dense<1.562500e-02> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %3 = stablehlo.divide %1, %2 : tensor<20x64xf32>
    %4 = call @round(%3) : (tensor<20x64xf32>) -> tensor<20x64xf32>
    %cst_1 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %6 = stablehlo.add %4, %5 : tensor<20x64xf32>
    %c = stablehlo.constant dense<-128> : tensor<i32>
    %c_2 = stablehlo.constant dense<127> : tensor<i32>
    %7 = call @clip(%6, %c, %c_2) : (tensor<20x64xf32>, tensor<i32>, tensor<i32>) -> tensor<20x64xf32>
    %8 = stablehlo.convert %7 : (tensor<20x64xf32>) -> tensor<20x64xi8>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9:5 = stablehlo.while(%iterArg = %arg1, %iterArg_9 = %arg2, %iterArg_10 = %arg3, %iterArg_11 = %c_3, %iterArg_12 = %8) : tensor<6x64x64xi8>, tensor<6xf32>, tensor<6x64xi32>, tensor<i32>, tensor<20x64xi8>
    cond {
      %c_13 = stablehlo.constant dense<6> : tensor<i32>
      %37 = stablehlo.compare LT, %iterArg_11, %c_13, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %37 : tensor<i1>
    } do {
      %37 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_11) : (tensor<6x64x64xi8>, tensor<i32>) -> tensor<64x64xi8>
      %38 = func.call @dynamic_index_in_dim_0(%iterArg_9, %iterArg_11) : (tensor<6xf32>, tensor<i32>) -> tensor<f32>
      %39 = func.call @dynamic_index_in_dim_1(%iterArg_10, %iterArg_11) : (tensor<6x64xi32>, tensor<i32>) -> tensor<64xi32>
      %40 = func.call @closed_call(%iterArg_12, %37, %38, %39) : (tensor<20x64xi8>, tensor<64x64xi8>, tensor<f32>, tensor<64xi32>) -> tensor<20x64xi8>
      %c_13 = stablehlo.constant dense<1> : tensor<i32>
      %41 = stablehlo.add %iterArg_11, %c_13 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_9, %iterArg_10, %41, %40 : tensor<6x64x64xi8>, tensor<6xf32>, tensor<6x64xi32>, tensor<i32>, tensor<20x64xi8>
    }
    %10 = stablehlo.dot_general %9#4, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x64xi8>, tensor<64x10xi8>) -> tensor<20x10xi32>
    %11 = stablehlo.convert %arg4 : (tensor<64x10xi8>) -> tensor<64x10xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.reduce(%11 init: %c_4) applies stablehlo.add across dimensions = [0] : (tensor<64x10xi32>, tensor<i32>) -> tensor<10xi32>
    %c_5 = stablehlo.constant dense<-128> : tensor<i32>
    %13 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<10xi32>
    %14 = stablehlo.multiply %13, %12 : tensor<10xi32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<10xi32>) -> tensor<1x10xi32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<1x10xi32>) -> tensor<20x10xi32>
    %17 = stablehlo.subtract %10, %16 : tensor<20x10xi32>
    %18 = stablehlo.broadcast_in_dim %arg6, dims = [1] : (tensor<10xi32>) -> tensor<1x10xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (tensor<1x10xi32>) -> tensor<20x10xi32>
    %20 = stablehlo.add %17, %19 : tensor<20x10xi32>
    %21 = stablehlo.convert %20 : (tensor<20x10xi32>) -> tensor<20x10xf32>
    %22 = stablehlo.broadcast_in_dim %arg5, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<20x10xf32>
    %24 = stablehlo.multiply %21, %23 : tensor<20x10xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_6) applies stablehlo.maximum across dimensions = [1] : (tensor<20x10xf32>, tensor<f32>) -> tensor<20xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<20xf32>
    %27 = stablehlo.maximum %26, %25 : tensor<20xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x10xf32>
    %30 = stablehlo.subtract %24, %29 : tensor<20x10xf32>
    %31 = stablehlo.exponential %30 : tensor<20x10xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %32 = stablehlo.reduce(%31 init: %cst_8) applies stablehlo.add across dimensions = [1] : (tensor<20x10xf32>, tensor<f32>) -> tensor<20xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x10xf32>
    %35 = stablehlo.divide %31, %34 : tensor<20x10xf32>
    %36 = call @argmax(%35) : (tensor<20x10xf32>) -> tensor<20xi32>
    return %35, %36 : tensor<20x10xf32>, tensor<20xi32>
  }
  func.func private @round(%arg0: tensor<20x64xf32>) -> tensor<20x64xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<20x64xf32>
    return %0 : tensor<20x64xf32>
  }
  func.func private @clip(%arg0: tensor<20x64xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<20x64xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<20x64xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<20x64xf32>
    return %5 : tensor<20x64xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x64x64xi8>, %arg1: tensor<i32>) -> tensor<64x64xi8> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 64, 64] : (tensor<6x64x64xi8>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x64xi8>
    %1 = stablehlo.reshape %0 : (tensor<1x64x64xi8>) -> tensor<64x64xi8>
    return %1 : tensor<64x64xi8>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<6xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<6xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<6x64xi32>, %arg1: tensor<i32>) -> tensor<64xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 64] : (tensor<6x64xi32>, tensor<i32>, tensor<i32>) -> tensor<1x64xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x64xi32>) -> tensor<64xi32>
    return %1 : tensor<64xi32>
  }
  func.func private @closed_call(%arg0: tensor<20x64xi8>, %arg1: tensor<64x64xi8>, %arg2: tensor<f32>, %arg3: tensor<64xi32>) -> tensor<20x64xi8> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x64xi8>, tensor<64x64xi8>) -> tensor<20x64xi32>
    %1 = stablehlo.convert %arg1 : (tensor<64x64xi8>) -> tensor<64x64xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<64x64xi32>, tensor<i32>) -> tensor<64xi32>
    %c_0 = stablehlo.constant dense<-128> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<64xi32>
    %4 = stablehlo.multiply %3, %2 : tensor<64xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<64xi32>) -> tensor<1x64xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x64xi32>) -> tensor<20x64xi32>
    %7 = stablehlo.subtract %0, %6 : tensor<20x64xi32>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<64xi32>) -> tensor<1x64xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x64xi32>) -> tensor<20x64xi32>
    %10 = stablehlo.add %7, %9 : tensor<20x64xi32>
    %11 = stablehlo.convert %10 : (tensor<20x64xi32>) -> tensor<20x64xf32>
    %12 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %13 = stablehlo.multiply %11, %12 : tensor<20x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %15 = stablehlo.maximum %13, %14 : tensor<20x64xf32>
    %cst_1 = stablehlo.constant dense<1.562500e-02> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %17 = stablehlo.divide %15, %16 : tensor<20x64xf32>
    %18 = call @round(%17) : (tensor<20x64xf32>) -> tensor<20x64xf32>
    %cst_2 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<20x64xf32>
    %20 = stablehlo.add %18, %19 : tensor<20x64xf32>
    %c_3 = stablehlo.constant dense<-128> : tensor<i32>
    %c_4 = stablehlo.constant dense<127> : tensor<i32>
    %21 = call @clip(%20, %c_3, %c_4) : (tensor<20x64xf32>, tensor<i32>, tensor<i32>) -> tensor<20x64xf32>
    %22 = stablehlo.convert %21 : (tensor<20x64xf32>) -> tensor<20x64xi8>
    return %22 : tensor<20x64xi8>
  }
  func.func private @argmax(%arg0: tensor<20x10xf32>) -> tensor<20xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<20x10xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<20x10xf32>, tensor<20x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<20xf32>, tensor<20xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<20xi32>
  }
}
