module @jit_mobilenet attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1x32x32x3xf32>, %arg1: tensor<3x3x3x8xi8>, %arg2: tensor<8xf32>, %arg3: tensor<8xi32>, %arg4: tensor<1x1x8x24xi8>, %arg5: tensor<24xf32>, %arg6: tensor<24xi32>, %arg7: tensor<3x3x1x24xi8>, %arg8: tensor<24xf32>, %arg9: tensor<24xi32>, %arg10: tensor<1x1x24x8xi8>, %arg11: tensor<8xf32>, %arg12: tensor<8xi32>, %arg13: tensor<1x1x8x24xi8>, %arg14: tensor<24xf32>, %arg15: tensor<24xi32>, %arg16: tensor<3x3x1x24xi8>, %arg17: tensor<24xf32>, %arg18: tensor<24xi32>, %arg19: tensor<1x1x24x16xi8>, %arg20: tensor<16xf32>, %arg21: tensor<16xi32>, %arg22: tensor<1x1x16x48xi8>, %arg23: tensor<48xf32>, %arg24: tensor<48xi32>, %arg25: tensor<3x3x1x48xi8>, %arg26: tensor<48xf32>, %arg27: tensor<48xi32>, %arg28: tensor<1x1x48x16xi8>, %arg29: tensor<16xf32>, %arg30: tensor<16xi32>, %arg31: tensor<16x10xi8>, %arg32: tensor<10xf32>, %arg33: tensor<10xi32>) -> (tensor<1x10xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<3.125000e-02> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x32x32x3xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<1x32x32x3xf32>
    %2 = call @round(%1) : (tensor<1x32x32x3xf32>) -> tensor<1x32x32x3xf32>
    %cst_0 = stablehlo.constant dense<-5.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x32x32x3xf32>
    %4 = stablehlo.add %2, %3 : tensor<1x32x32x3xf32>
    %c = stablehlo.constant dense<-128> : tensor<i32>
    %c_1 = stablehlo.constant dense<127> : tensor<i32>
    %5 = call @clip(%4, %c, %c_1) : (tensor<1x32x32x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32x3xf32>
    %6 = stablehlo.convert %5 : (tensor<1x32x32x3xf32>) -> tensor<1x32x32x3xi8>
    %c_2 = stablehlo.constant dense<-5> : tensor<i32>
    %7 = call @_pad(%6, %c_2) : (tensor<1x32x32x3xi8>, tensor<i32>) -> tensor<1x34x34x3xi8>
    %8 = stablehlo.convolution(%7, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x34x34x3xi8>, tensor<3x3x3x8xi8>) -> tensor<1x16x16x8xi32>
    %9 = stablehlo.convert %arg1 : (tensor<3x3x3x8xi8>) -> tensor<3x3x3x8xi32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.reduce(%9 init: %c_3) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x3x3x8xi32>, tensor<i32>) -> tensor<8xi32>
    %c_4 = stablehlo.constant dense<-5> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %12 = stablehlo.multiply %11, %10 : tensor<8xi32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [3] : (tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi32>) -> tensor<1x16x16x8xi32>
    %15 = stablehlo.subtract %8, %14 : tensor<1x16x16x8xi32>
    %16 = stablehlo.broadcast_in_dim %arg3, dims = [3] : (tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi32>) -> tensor<1x16x16x8xi32>
    %18 = stablehlo.add %15, %17 : tensor<1x16x16x8xi32>
    %19 = stablehlo.convert %18 : (tensor<1x16x16x8xi32>) -> tensor<1x16x16x8xf32>
    %20 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xf32>) -> tensor<1x16x16x8xf32>
    %22 = stablehlo.multiply %19, %21 : tensor<1x16x16x8xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %c_6 = stablehlo.constant dense<6> : tensor<i32>
    %23 = call @clip_0(%22, %c_5, %c_6) : (tensor<1x16x16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x8xf32>
    %cst_7 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %25 = stablehlo.divide %23, %24 : tensor<1x16x16x8xf32>
    %26 = call @round_1(%25) : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
    %cst_8 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %28 = stablehlo.add %26, %27 : tensor<1x16x16x8xf32>
    %c_9 = stablehlo.constant dense<-128> : tensor<i32>
    %c_10 = stablehlo.constant dense<127> : tensor<i32>
    %29 = call @clip_0(%28, %c_9, %c_10) : (tensor<1x16x16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x8xf32>
    %30 = stablehlo.convert %29 : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xi8>
    %c_11 = stablehlo.constant dense<3> : tensor<i32>
    %31 = call @_pad_2(%30, %c_11) : (tensor<1x16x16x8xi8>, tensor<i32>) -> tensor<1x16x16x8xi8>
    %32 = stablehlo.convolution(%31, %arg4) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x8xi8>, tensor<1x1x8x24xi8>) -> tensor<1x16x16x24xi32>
    %33 = stablehlo.convert %arg4 : (tensor<1x1x8x24xi8>) -> tensor<1x1x8x24xi32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %34 = stablehlo.reduce(%33 init: %c_12) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x8x24xi32>, tensor<i32>) -> tensor<24xi32>
    %c_13 = stablehlo.constant dense<3> : tensor<i32>
    %35 = stablehlo.broadcast_in_dim %c_13, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %36 = stablehlo.multiply %35, %34 : tensor<24xi32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %39 = stablehlo.subtract %32, %38 : tensor<1x16x16x24xi32>
    %40 = stablehlo.broadcast_in_dim %arg6, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %42 = stablehlo.add %39, %41 : tensor<1x16x16x24xi32>
    %43 = stablehlo.convert %42 : (tensor<1x16x16x24xi32>) -> tensor<1x16x16x24xf32>
    %44 = stablehlo.broadcast_in_dim %arg5, dims = [3] : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<1x16x16x24xf32>
    %46 = stablehlo.multiply %43, %45 : tensor<1x16x16x24xf32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %c_15 = stablehlo.constant dense<6> : tensor<i32>
    %47 = call @clip_3(%46, %c_14, %c_15) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %cst_16 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %49 = stablehlo.divide %47, %48 : tensor<1x16x16x24xf32>
    %50 = call @round_4(%49) : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xf32>
    %cst_17 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %52 = stablehlo.add %50, %51 : tensor<1x16x16x24xf32>
    %c_18 = stablehlo.constant dense<-128> : tensor<i32>
    %c_19 = stablehlo.constant dense<127> : tensor<i32>
    %53 = call @clip_3(%52, %c_18, %c_19) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %54 = stablehlo.convert %53 : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xi8>
    %c_20 = stablehlo.constant dense<-128> : tensor<i32>
    %55 = call @_pad_5(%54, %c_20) : (tensor<1x16x16x24xi8>, tensor<i32>) -> tensor<1x18x18x24xi8>
    %56 = stablehlo.convolution(%55, %arg7) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 24 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x18x18x24xi8>, tensor<3x3x1x24xi8>) -> tensor<1x16x16x24xi32>
    %57 = stablehlo.convert %arg7 : (tensor<3x3x1x24xi8>) -> tensor<3x3x1x24xi32>
    %c_21 = stablehlo.constant dense<0> : tensor<i32>
    %58 = stablehlo.reduce(%57 init: %c_21) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x3x1x24xi32>, tensor<i32>) -> tensor<24xi32>
    %c_22 = stablehlo.constant dense<-128> : tensor<i32>
    %59 = stablehlo.broadcast_in_dim %c_22, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %60 = stablehlo.multiply %59, %58 : tensor<24xi32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %63 = stablehlo.subtract %56, %62 : tensor<1x16x16x24xi32>
    %64 = stablehlo.broadcast_in_dim %arg9, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %66 = stablehlo.add %63, %65 : tensor<1x16x16x24xi32>
    %67 = stablehlo.convert %66 : (tensor<1x16x16x24xi32>) -> tensor<1x16x16x24xf32>
    %68 = stablehlo.broadcast_in_dim %arg8, dims = [3] : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<1x16x16x24xf32>
    %70 = stablehlo.multiply %67, %69 : tensor<1x16x16x24xf32>
    %c_23 = stablehlo.constant dense<0> : tensor<i32>
    %c_24 = stablehlo.constant dense<6> : tensor<i32>
    %71 = call @clip_3(%70, %c_23, %c_24) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %cst_25 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %73 = stablehlo.divide %71, %72 : tensor<1x16x16x24xf32>
    %74 = call @round_4(%73) : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xf32>
    %cst_26 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %76 = stablehlo.add %74, %75 : tensor<1x16x16x24xf32>
    %c_27 = stablehlo.constant dense<-128> : tensor<i32>
    %c_28 = stablehlo.constant dense<127> : tensor<i32>
    %77 = call @clip_3(%76, %c_27, %c_28) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %78 = stablehlo.convert %77 : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xi8>
    %c_29 = stablehlo.constant dense<-128> : tensor<i32>
    %79 = call @_pad_6(%78, %c_29) : (tensor<1x16x16x24xi8>, tensor<i32>) -> tensor<1x16x16x24xi8>
    %80 = stablehlo.convolution(%79, %arg10) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x24xi8>, tensor<1x1x24x8xi8>) -> tensor<1x16x16x8xi32>
    %81 = stablehlo.convert %arg10 : (tensor<1x1x24x8xi8>) -> tensor<1x1x24x8xi32>
    %c_30 = stablehlo.constant dense<0> : tensor<i32>
    %82 = stablehlo.reduce(%81 init: %c_30) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x24x8xi32>, tensor<i32>) -> tensor<8xi32>
    %c_31 = stablehlo.constant dense<-128> : tensor<i32>
    %83 = stablehlo.broadcast_in_dim %c_31, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %84 = stablehlo.multiply %83, %82 : tensor<8xi32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [3] : (tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi32>) -> tensor<1x16x16x8xi32>
    %87 = stablehlo.subtract %80, %86 : tensor<1x16x16x8xi32>
    %88 = stablehlo.broadcast_in_dim %arg12, dims = [3] : (tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xi32>) -> tensor<1x16x16x8xi32>
    %90 = stablehlo.add %87, %89 : tensor<1x16x16x8xi32>
    %91 = stablehlo.convert %90 : (tensor<1x16x16x8xi32>) -> tensor<1x16x16x8xf32>
    %92 = stablehlo.broadcast_in_dim %arg11, dims = [3] : (tensor<8xf32>) -> tensor<1x1x1x8xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xf32>) -> tensor<1x16x16x8xf32>
    %94 = stablehlo.multiply %91, %93 : tensor<1x16x16x8xf32>
    %95 = stablehlo.convert %30 : (tensor<1x16x16x8xi8>) -> tensor<1x16x16x8xf32>
    %cst_32 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %97 = stablehlo.subtract %95, %96 : tensor<1x16x16x8xf32>
    %cst_33 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %98 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %99 = stablehlo.divide %97, %98 : tensor<1x16x16x8xf32>
    %100 = stablehlo.add %94, %99 : tensor<1x16x16x8xf32>
    %cst_34 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %102 = stablehlo.divide %100, %101 : tensor<1x16x16x8xf32>
    %103 = call @round_1(%102) : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
    %cst_35 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %104 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %105 = stablehlo.add %103, %104 : tensor<1x16x16x8xf32>
    %c_36 = stablehlo.constant dense<-128> : tensor<i32>
    %c_37 = stablehlo.constant dense<127> : tensor<i32>
    %106 = call @clip_0(%105, %c_36, %c_37) : (tensor<1x16x16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x8xf32>
    %107 = stablehlo.convert %106 : (tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xi8>
    %c_38 = stablehlo.constant dense<3> : tensor<i32>
    %108 = call @_pad_2(%107, %c_38) : (tensor<1x16x16x8xi8>, tensor<i32>) -> tensor<1x16x16x8xi8>
    %109 = stablehlo.convolution(%108, %arg13) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x8xi8>, tensor<1x1x8x24xi8>) -> tensor<1x16x16x24xi32>
    %110 = stablehlo.convert %arg13 : (tensor<1x1x8x24xi8>) -> tensor<1x1x8x24xi32>
    %c_39 = stablehlo.constant dense<0> : tensor<i32>
    %111 = stablehlo.reduce(%110 init: %c_39) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x8x24xi32>, tensor<i32>) -> tensor<24xi32>
    %c_40 = stablehlo.constant dense<3> : tensor<i32>
    %112 = stablehlo.broadcast_in_dim %c_40, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %113 = stablehlo.multiply %112, %111 : tensor<24xi32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %116 = stablehlo.subtract %109, %115 : tensor<1x16x16x24xi32>
    %117 = stablehlo.broadcast_in_dim %arg15, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x16x16x24xi32>
    %119 = stablehlo.add %116, %118 : tensor<1x16x16x24xi32>
    %120 = stablehlo.convert %119 : (tensor<1x16x16x24xi32>) -> tensor<1x16x16x24xf32>
    %121 = stablehlo.broadcast_in_dim %arg14, dims = [3] : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
    %122 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<1x16x16x24xf32>
    %123 = stablehlo.multiply %120, %122 : tensor<1x16x16x24xf32>
    %c_41 = stablehlo.constant dense<0> : tensor<i32>
    %c_42 = stablehlo.constant dense<6> : tensor<i32>
    %124 = call @clip_3(%123, %c_41, %c_42) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %cst_43 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %126 = stablehlo.divide %124, %125 : tensor<1x16x16x24xf32>
    %127 = call @round_4(%126) : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xf32>
    %cst_44 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %129 = stablehlo.add %127, %128 : tensor<1x16x16x24xf32>
    %c_45 = stablehlo.constant dense<-128> : tensor<i32>
    %c_46 = stablehlo.constant dense<127> : tensor<i32>
    %130 = call @clip_3(%129, %c_45, %c_46) : (tensor<1x16x16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16x24xf32>
    %131 = stablehlo.convert %130 : (tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xi8>
    %c_47 = stablehlo.constant dense<-128> : tensor<i32>
    %132 = call @_pad_5(%131, %c_47) : (tensor<1x16x16x24xi8>, tensor<i32>) -> tensor<1x18x18x24xi8>
    %133 = stablehlo.convolution(%132, %arg16) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 24 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x18x18x24xi8>, tensor<3x3x1x24xi8>) -> tensor<1x8x8x24xi32>
    %134 = stablehlo.convert %arg16 : (tensor<3x3x1x24xi8>) -> tensor<3x3x1x24xi32>
    %c_48 = stablehlo.constant dense<0> : tensor<i32>
    %135 = stablehlo.reduce(%134 init: %c_48) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x3x1x24xi32>, tensor<i32>) -> tensor<24xi32>
    %c_49 = stablehlo.constant dense<-128> : tensor<i32>
    %136 = stablehlo.broadcast_in_dim %c_49, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %137 = stablehlo.multiply %136, %135 : tensor<24xi32>
    %138 = stablehlo.broadcast_in_dim %137, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x8x8x24xi32>
    %140 = stablehlo.subtract %133, %139 : tensor<1x8x8x24xi32>
    %141 = stablehlo.broadcast_in_dim %arg18, dims = [3] : (tensor<24xi32>) -> tensor<1x1x1x24xi32>
    %142 = stablehlo.broadcast_in_dim %141, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xi32>) -> tensor<1x8x8x24xi32>
    %143 = stablehlo.add %140, %142 : tensor<1x8x8x24xi32>
    %144 = stablehlo.convert %143 : (tensor<1x8x8x24xi32>) -> tensor<1x8x8x24xf32>
    %145 = stablehlo.broadcast_in_dim %arg17, dims = [3] : (tensor<24xf32>) -> tensor<1x1x1x24xf32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [0, 1, 2, 3] : (tensor<1x1x1x24xf32>) -> tensor<1x8x8x24xf32>
    %147 = stablehlo.multiply %144, %146 : tensor<1x8x8x24xf32>
    %c_50 = stablehlo.constant dense<0> : tensor<i32>
    %c_51 = stablehlo.constant dense<6> : tensor<i32>
    %148 = call @clip_7(%147, %c_50, %c_51) : (tensor<1x8x8x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x24xf32>
    %cst_52 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %149 = stablehlo.broadcast_in_dim %cst_52, dims = [] : (tensor<f32>) -> tensor<1x8x8x24xf32>
    %150 = stablehlo.divide %148, %149 : tensor<1x8x8x24xf32>
    %151 = call @round_8(%150) : (tensor<1x8x8x24xf32>) -> tensor<1x8x8x24xf32>
    %cst_53 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<1x8x8x24xf32>
    %153 = stablehlo.add %151, %152 : tensor<1x8x8x24xf32>
    %c_54 = stablehlo.constant dense<-128> : tensor<i32>
    %c_55 = stablehlo.constant dense<127> : tensor<i32>
    %154 = call @clip_7(%153, %c_54, %c_55) : (tensor<1x8x8x24xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x24xf32>
    %155 = stablehlo.convert %154 : (tensor<1x8x8x24xf32>) -> tensor<1x8x8x24xi8>
    %c_56 = stablehlo.constant dense<-128> : tensor<i32>
    %156 = call @_pad_9(%155, %c_56) : (tensor<1x8x8x24xi8>, tensor<i32>) -> tensor<1x8x8x24xi8>
    %157 = stablehlo.convolution(%156, %arg19) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x24xi8>, tensor<1x1x24x16xi8>) -> tensor<1x8x8x16xi32>
    %158 = stablehlo.convert %arg19 : (tensor<1x1x24x16xi8>) -> tensor<1x1x24x16xi32>
    %c_57 = stablehlo.constant dense<0> : tensor<i32>
    %159 = stablehlo.reduce(%158 init: %c_57) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x24x16xi32>, tensor<i32>) -> tensor<16xi32>
    %c_58 = stablehlo.constant dense<-128> : tensor<i32>
    %160 = stablehlo.broadcast_in_dim %c_58, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %161 = stablehlo.multiply %160, %159 : tensor<16xi32>
    %162 = stablehlo.broadcast_in_dim %161, dims = [3] : (tensor<16xi32>) -> tensor<1x1x1x16xi32>
    %163 = stablehlo.broadcast_in_dim %162, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xi32>) -> tensor<1x8x8x16xi32>
    %164 = stablehlo.subtract %157, %163 : tensor<1x8x8x16xi32>
    %165 = stablehlo.broadcast_in_dim %arg21, dims = [3] : (tensor<16xi32>) -> tensor<1x1x1x16xi32>
    %166 = stablehlo.broadcast_in_dim %165, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xi32>) -> tensor<1x8x8x16xi32>
    %167 = stablehlo.add %164, %166 : tensor<1x8x8x16xi32>
    %168 = stablehlo.convert %167 : (tensor<1x8x8x16xi32>) -> tensor<1x8x8x16xf32>
    %169 = stablehlo.broadcast_in_dim %arg20, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<1x8x8x16xf32>
    %171 = stablehlo.multiply %168, %170 : tensor<1x8x8x16xf32>
    %cst_59 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %172 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %173 = stablehlo.divide %171, %172 : tensor<1x8x8x16xf32>
    %174 = call @round_10(%173) : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
    %cst_60 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %175 = stablehlo.broadcast_in_dim %cst_60, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %176 = stablehlo.add %174, %175 : tensor<1x8x8x16xf32>
    %c_61 = stablehlo.constant dense<-128> : tensor<i32>
    %c_62 = stablehlo.constant dense<127> : tensor<i32>
    %177 = call @clip_11(%176, %c_61, %c_62) : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
    %178 = stablehlo.convert %177 : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xi8>
    %c_63 = stablehlo.constant dense<3> : tensor<i32>
    %179 = call @_pad_12(%178, %c_63) : (tensor<1x8x8x16xi8>, tensor<i32>) -> tensor<1x8x8x16xi8>
    %180 = stablehlo.convolution(%179, %arg22) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x16xi8>, tensor<1x1x16x48xi8>) -> tensor<1x8x8x48xi32>
    %181 = stablehlo.convert %arg22 : (tensor<1x1x16x48xi8>) -> tensor<1x1x16x48xi32>
    %c_64 = stablehlo.constant dense<0> : tensor<i32>
    %182 = stablehlo.reduce(%181 init: %c_64) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x16x48xi32>, tensor<i32>) -> tensor<48xi32>
    %c_65 = stablehlo.constant dense<3> : tensor<i32>
    %183 = stablehlo.broadcast_in_dim %c_65, dims = [] : (tensor<i32>) -> tensor<48xi32>
    %184 = stablehlo.multiply %183, %182 : tensor<48xi32>
    %185 = stablehlo.broadcast_in_dim %184, dims = [3] : (tensor<48xi32>) -> tensor<1x1x1x48xi32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xi32>) -> tensor<1x8x8x48xi32>
    %187 = stablehlo.subtract %180, %186 : tensor<1x8x8x48xi32>
    %188 = stablehlo.broadcast_in_dim %arg24, dims = [3] : (tensor<48xi32>) -> tensor<1x1x1x48xi32>
    %189 = stablehlo.broadcast_in_dim %188, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xi32>) -> tensor<1x8x8x48xi32>
    %190 = stablehlo.add %187, %189 : tensor<1x8x8x48xi32>
    %191 = stablehlo.convert %190 : (tensor<1x8x8x48xi32>) -> tensor<1x8x8x48xf32>
    %192 = stablehlo.broadcast_in_dim %arg23, dims = [3] : (tensor<48xf32>) -> tensor<1x1x1x48xf32>
    %193 = stablehlo.broadcast_in_dim %192, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xf32>) -> tensor<1x8x8x48xf32>
    %194 = stablehlo.multiply %191, %193 : tensor<1x8x8x48xf32>
    %c_66 = stablehlo.constant dense<0> : tensor<i32>
    %c_67 = stablehlo.constant dense<6> : tensor<i32>
    %195 = call @clip_13(%194, %c_66, %c_67) : (tensor<1x8x8x48xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x48xf32>
    %cst_68 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %196 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %197 = stablehlo.divide %195, %196 : tensor<1x8x8x48xf32>
    %198 = call @round_14(%197) : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32>
    %cst_69 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %199 = stablehlo.broadcast_in_dim %cst_69, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %200 = stablehlo.add %198, %199 : tensor<1x8x8x48xf32>
    %c_70 = stablehlo.constant dense<-128> : tensor<i32>
    %c_71 = stablehlo.constant dense<127> : tensor<i32>
    %201 = call @clip_13(%200, %c_70, %c_71) : (tensor<1x8x8x48xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x48xf32>
    %202 = stablehlo.convert %201 : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xi8>
    %c_72 = stablehlo.constant dense<-128> : tensor<i32>
    %203 = call @_pad_15(%202, %c_72) : (tensor<1x8x8x48xi8>, tensor<i32>) -> tensor<1x10x10x48xi8>
    %204 = stablehlo.convolution(%203, %arg25) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x10x10x48xi8>, tensor<3x3x1x48xi8>) -> tensor<1x8x8x48xi32>
    %205 = stablehlo.convert %arg25 : (tensor<3x3x1x48xi8>) -> tensor<3x3x1x48xi32>
    %c_73 = stablehlo.constant dense<0> : tensor<i32>
    %206 = stablehlo.reduce(%205 init: %c_73) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<3x3x1x48xi32>, tensor<i32>) -> tensor<48xi32>
    %c_74 = stablehlo.constant dense<-128> : tensor<i32>
    %207 = stablehlo.broadcast_in_dim %c_74, dims = [] : (tensor<i32>) -> tensor<48xi32>
    %208 = stablehlo.multiply %207, %206 : tensor<48xi32>
    %209 = stablehlo.broadcast_in_dim %208, dims = [3] : (tensor<48xi32>) -> tensor<1x1x1x48xi32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xi32>) -> tensor<1x8x8x48xi32>
    %211 = stablehlo.subtract %204, %210 : tensor<1x8x8x48xi32>
    %212 = stablehlo.broadcast_in_dim %arg27, dims = [3] : (tensor<48xi32>) -> tensor<1x1x1x48xi32>
    %213 = stablehlo.broadcast_in_dim %212, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xi32>) -> tensor<1x8x8x48xi32>
    %214 = stablehlo.add %211, %213 : tensor<1x8x8x48xi32>
    %215 = stablehlo.convert %214 : (tensor<1x8x8x48xi32>) -> tensor<1x8x8x48xf32>
    %216 = stablehlo.broadcast_in_dim %arg26, dims = [3] : (tensor<48xf32>) -> tensor<1x1x1x48xf32>
    %217 = stablehlo.broadcast_in_dim %216, dims = [0, 1, 2, 3] : (tensor<1x1x1x48xf32>) -> tensor<1x8x8x48xf32>
    %218 = stablehlo.multiply %215, %217 : tensor<1x8x8x48xf32>
    %c_75 = stablehlo.constant dense<0> : tensor<i32>
    %c_76 = stablehlo.constant dense<6> : tensor<i32>
    %219 = call @clip_13(%218, %c_75, %c_76) : (tensor<1x8x8x48xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x48xf32>
    %cst_77 = stablehlo.constant dense<0.0235294122> : tensor<f32>
    %220 = stablehlo.broadcast_in_dim %cst_77, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %221 = stablehlo.divide %219, %220 : tensor<1x8x8x48xf32>
    %222 = call @round_14(%221) : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32>
    %cst_78 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %223 = stablehlo.broadcast_in_dim %cst_78, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %224 = stablehlo.add %222, %223 : tensor<1x8x8x48xf32>
    %c_79 = stablehlo.constant dense<-128> : tensor<i32>
    %c_80 = stablehlo.constant dense<127> : tensor<i32>
    %225 = call @clip_13(%224, %c_79, %c_80) : (tensor<1x8x8x48xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x48xf32>
    %226 = stablehlo.convert %225 : (tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xi8>
    %c_81 = stablehlo.constant dense<-128> : tensor<i32>
    %227 = call @_pad_16(%226, %c_81) : (tensor<1x8x8x48xi8>, tensor<i32>) -> tensor<1x8x8x48xi8>
    %228 = stablehlo.convolution(%227, %arg28) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x48xi8>, tensor<1x1x48x16xi8>) -> tensor<1x8x8x16xi32>
    %229 = stablehlo.convert %arg28 : (tensor<1x1x48x16xi8>) -> tensor<1x1x48x16xi32>
    %c_82 = stablehlo.constant dense<0> : tensor<i32>
    %230 = stablehlo.reduce(%229 init: %c_82) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x1x48x16xi32>, tensor<i32>) -> tensor<16xi32>
    %c_83 = stablehlo.constant dense<-128> : tensor<i32>
    %231 = stablehlo.broadcast_in_dim %c_83, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %232 = stablehlo.multiply %231, %230 : tensor<16xi32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [3] : (tensor<16xi32>) -> tensor<1x1x1x16xi32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xi32>) -> tensor<1x8x8x16xi32>
    %235 = stablehlo.subtract %228, %234 : tensor<1x8x8x16xi32>
    %236 = stablehlo.broadcast_in_dim %arg30, dims = [3] : (tensor<16xi32>) -> tensor<1x1x1x16xi32>
    %237 = stablehlo.broadcast_in_dim %236, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xi32>) -> tensor<1x8x8x16xi32>
    %238 = stablehlo.add %235, %237 : tensor<1x8x8x16xi32>
    %239 = stablehlo.convert %238 : (tensor<1x8x8x16xi32>) -> tensor<1x8x8x16xf32>
    %240 = stablehlo.broadcast_in_dim %arg29, dims = [3] : (tensor<16xf32>) -> tensor<1x1x1x16xf32>
    %241 = stablehlo.broadcast_in_dim %240, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xf32>) -> tensor<1x8x8x16xf32>
    %242 = stablehlo.multiply %239, %241 : tensor<1x8x8x16xf32>
    %243 = stablehlo.convert %178 : (tensor<1x8x8x16xi8>) -> tensor<1x8x8x16xf32>
    %cst_84 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %244 = stablehlo.broadcast_in_dim %cst_84, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %245 = stablehlo.subtract %243, %244 : tensor<1x8x8x16xf32>
    %cst_85 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %246 = stablehlo.broadcast_in_dim %cst_85, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %247 = stablehlo.divide %245, %246 : tensor<1x8x8x16xf32>
    %248 = stablehlo.add %242, %247 : tensor<1x8x8x16xf32>
    %cst_86 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %249 = stablehlo.broadcast_in_dim %cst_86, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %250 = stablehlo.divide %248, %249 : tensor<1x8x8x16xf32>
    %251 = call @round_10(%250) : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
    %cst_87 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %252 = stablehlo.broadcast_in_dim %cst_87, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %253 = stablehlo.add %251, %252 : tensor<1x8x8x16xf32>
    %c_88 = stablehlo.constant dense<-128> : tensor<i32>
    %c_89 = stablehlo.constant dense<127> : tensor<i32>
    %254 = call @clip_11(%253, %c_88, %c_89) : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
    %255 = stablehlo.convert %254 : (tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xi8>
    %256 = stablehlo.convert %255 : (tensor<1x8x8x16xi8>) -> tensor<1x8x8x16xf32>
    %cst_90 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %257 = stablehlo.broadcast_in_dim %cst_90, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %258 = stablehlo.subtract %256, %257 : tensor<1x8x8x16xf32>
    %cst_91 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %259 = stablehlo.broadcast_in_dim %cst_91, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %260 = stablehlo.divide %258, %259 : tensor<1x8x8x16xf32>
    %cst_92 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %261 = stablehlo.reduce(%260 init: %cst_92) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x16xf32>
    %cst_93 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %262 = stablehlo.broadcast_in_dim %cst_93, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %263 = stablehlo.divide %261, %262 : tensor<1x16xf32>
    %cst_94 = stablehlo.constant dense<3.125000e-02> : tensor<f32>
    %264 = stablehlo.broadcast_in_dim %cst_94, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %265 = stablehlo.divide %263, %264 : tensor<1x16xf32>
    %266 = call @round_17(%265) : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %cst_95 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %267 = stablehlo.broadcast_in_dim %cst_95, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %268 = stablehlo.add %266, %267 : tensor<1x16xf32>
    %c_96 = stablehlo.constant dense<-128> : tensor<i32>
    %c_97 = stablehlo.constant dense<127> : tensor<i32>
    %269 = call @clip_18(%268, %c_96, %c_97) : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
    %270 = stablehlo.convert %269 : (tensor<1x16xf32>) -> tensor<1x16xi8>
    %271 = stablehlo.dot_general %270, %arg31, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x16xi8>, tensor<16x10xi8>) -> tensor<1x10xi32>
    %272 = stablehlo.convert %arg31 : (tensor<16x10xi8>) -> tensor<16x10xi32>
    %c_98 = stablehlo.constant dense<0> : tensor<i32>
    %273 = stablehlo.reduce(%272 init: %c_98) applies stablehlo.add across dimensions = [0] : (tensor<16x10xi32>, tensor<i32>) -> tensor<10xi32>
    %c_99 = stablehlo.constant dense<0> : tensor<i32>
    %274 = stablehlo.broadcast_in_dim %c_99, dims = [] : (tensor<i32>) -> tensor<10xi32>
    %275 = stablehlo.multiply %274, %273 : tensor<10xi32>
    %276 = stablehlo.broadcast_in_dim %275, dims = [1] : (tensor<10xi32>) -> tensor<1x10xi32>
    %277 = stablehlo.subtract %271, %276 : tensor<1x10xi32>
    %278 = stablehlo.broadcast_in_dim %arg33, dims = [1] : (tensor<10xi32>) -> tensor<1x10xi32>
    %279 = stablehlo.add %277, %278 : tensor<1x10xi32>
    %280 = stablehlo.convert %279 : (tensor<1x10xi32>) -> tensor<1x10xf32>
    %281 = stablehlo.broadcast_in_dim %arg32, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %282 = stablehlo.multiply %280, %281 : tensor<1x10xf32>
    %cst_100 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %283 = stablehlo.reduce(%282 init: %cst_100) applies stablehlo.maximum across dimensions = [1] : (tensor<1x10xf32>, tensor<f32>) -> tensor<1xf32>
    %cst_101 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %284 = stablehlo.broadcast_in_dim %cst_101, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %285 = stablehlo.maximum %284, %283 : tensor<1xf32>
    %286 = stablehlo.broadcast_in_dim %285, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %287 = stablehlo.broadcast_in_dim %286, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x10xf32>
    %288 = stablehlo.subtract %282, %287 : tensor<1x10xf32>
    %289 = stablehlo.exponential %288 : tensor<1x10xf32>
    %cst_102 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %290 = stablehlo.reduce(%289 init: %cst_102) applies stablehlo.add across dimensions = [1] : (tensor<1x10xf32>, tensor<f32>) -> tensor<1xf32>
    %291 = stablehlo.broadcast_in_dim %290, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %292 = stablehlo.broadcast_in_dim %291, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x10xf32>
    %293 = stablehlo.divide %289, %292 : tensor<1x10xf32>
    return %293 : tensor<1x10xf32>
  }
  func.func private @round(%arg0: tensor<1x32x32x3xf32>) -> tensor<1x32x32x3xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x32x32x3xf32>
    return %0 : tensor<1x32x32x3xf32>
  }
  func.func private @clip(%arg0: tensor<1x32x32x3xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x32x32x3xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x32x32x3xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x32x32x3xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x32x32x3xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x32x32x3xf32>
    return %5 : tensor<1x32x32x3xf32>
  }
  func.func private @_pad(%arg0: tensor<1x32x32x3xi8>, %arg1: tensor<i32>) -> tensor<1x34x34x3xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x32x32x3xi8>, tensor<i8>) -> tensor<1x34x34x3xi8>
    return %1 : tensor<1x34x34x3xi8>
  }
  func.func private @clip_0(%arg0: tensor<1x16x16x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x16x16x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x16x16x8xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x16x16x8xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x16x16x8xf32>
    return %5 : tensor<1x16x16x8xf32>
  }
  func.func private @round_1(%arg0: tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x16x16x8xf32>
    return %0 : tensor<1x16x16x8xf32>
  }
  func.func private @_pad_2(%arg0: tensor<1x16x16x8xi8>, %arg1: tensor<i32>) -> tensor<1x16x16x8xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x16x16x8xi8>, tensor<i8>) -> tensor<1x16x16x8xi8>
    return %1 : tensor<1x16x16x8xi8>
  }
  func.func private @clip_3(%arg0: tensor<1x16x16x24xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x16x16x24xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x16x16x24xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x16x16x24xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x16x16x24xf32>
    return %5 : tensor<1x16x16x24xf32>
  }
  func.func private @round_4(%arg0: tensor<1x16x16x24xf32>) -> tensor<1x16x16x24xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x16x16x24xf32>
    return %0 : tensor<1x16x16x24xf32>
  }
  func.func private @_pad_5(%arg0: tensor<1x16x16x24xi8>, %arg1: tensor<i32>) -> tensor<1x18x18x24xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x16x16x24xi8>, tensor<i8>) -> tensor<1x18x18x24xi8>
    return %1 : tensor<1x18x18x24xi8>
  }
  func.func private @_pad_6(%arg0: tensor<1x16x16x24xi8>, %arg1: tensor<i32>) -> tensor<1x16x16x24xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x16x16x24xi8>, tensor<i8>) -> tensor<1x16x16x24xi8>
    return %1 : tensor<1x16x16x24xi8>
  }
  func.func private @clip_7(%arg0: tensor<1x8x8x24xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8x8x24xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x8x8x24xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x8x8x24xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x8x8x24xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x8x8x24xf32>
    return %5 : tensor<1x8x8x24xf32>
  }
  func.func private @round_8(%arg0: tensor<1x8x8x24xf32>) -> tensor<1x8x8x24xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x8x8x24xf32>
    return %0 : tensor<1x8x8x24xf32>
  }
  func.func private @_pad_9(%arg0: tensor<1x8x8x24xi8>, %arg1: tensor<i32>) -> tensor<1x8x8x24xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x24xi8>, tensor<i8>) -> tensor<1x8x8x24xi8>
    return %1 : tensor<1x8x8x24xi8>
  }
  func.func private @round_10(%arg0: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x8x8x16xf32>
    return %0 : tensor<1x8x8x16xf32>
  }
  func.func private @clip_11(%arg0: tensor<1x8x8x16xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8x8x16xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x8x8x16xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x8x8x16xf32>
    return %5 : tensor<1x8x8x16xf32>
  }
  func.func private @_pad_12(%arg0: tensor<1x8x8x16xi8>, %arg1: tensor<i32>) -> tensor<1x8x8x16xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x16xi8>, tensor<i8>) -> tensor<1x8x8x16xi8>
    return %1 : tensor<1x8x8x16xi8>
  }
  func.func private @clip_13(%arg0: tensor<1x8x8x48xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8x8x48xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x8x8x48xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x8x8x48xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x8x8x48xf32>
    return %5 : tensor<1x8x8x48xf32>
  }
  func.func private @round_14(%arg0: tensor<1x8x8x48xf32>) -> tensor<1x8x8x48xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x8x8x48xf32>
    return %0 : tensor<1x8x8x48xf32>
  }
  func.func private @_pad_15(%arg0: tensor<1x8x8x48xi8>, %arg1: tensor<i32>) -> tensor<1x10x10x48xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x48xi8>, tensor<i8>) -> tensor<1x10x10x48xi8>
    return %1 : tensor<1x10x10x48xi8>
  }
  func.func private @_pad_16(%arg0: tensor<1x8x8x48xi8>, %arg1: tensor<i32>) -> tensor<1x8x8x48xi8> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<i8>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x8x8x48xi8>, tensor<i8>) -> tensor<1x8x8x48xi8>
    return %1 : tensor<1x8x8x48xi8>
  }
  func.func private @round_17(%arg0: tensor<1x16xf32>) -> tensor<1x16xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<1x16xf32>
    return %0 : tensor<1x16xf32>
  }
  func.func private @clip_18(%arg0: tensor<1x16xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x16xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x16xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x16xf32>
    return %5 : tensor<1x16xf32>
  }
}
