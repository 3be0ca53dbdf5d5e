module @jit_transformer attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<20x32xf32>, %arg1: tensor<32x32xi8>, %arg2: tensor<32xf32>, %arg3: tensor<32xi32>, %arg4: tensor<32x32xi8>, %arg5: tensor<32xf32>, %arg6: tensor<32xi32>, %arg7: tensor<32x32xi8>, %arg8: tensor<32xf32>, %arg9: tensor<32xi32>, %arg10: tensor<32x32xi8>, %arg11: tensor<32xf32>, %arg12: tensor<32xi32>, %arg13: tensor<32x128xi8>, %arg14: tensor<128xf32>, %arg15: tensor<128xi32>, %arg16: tensor<128x32xi8>, %arg17: tensor<32xf32>, %arg18: tensor<32xi32>, %arg19: tensor<32xf32>, %arg20: tensor<32xf32>, %arg21: tensor<32xf32>, %arg22: tensor<32xf32>) -> (tensor<20x32xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<20x32xf32>, tensor<f32>) -> tensor<20xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %cst_0 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<20x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<20x32xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<20x32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<20x32xf32>, tensor<f32>) -> tensor<20xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %10 = stablehlo.divide %8, %9 : tensor<20x1xf32>
    %11 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %12 = stablehlo.subtract %arg0, %11 : tensor<20x32xf32>
    %cst_3 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %14 = stablehlo.add %10, %13 : tensor<20x1xf32>
    %15 = stablehlo.rsqrt %14 : tensor<20x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %17 = stablehlo.multiply %12, %16 : tensor<20x32xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %19 = stablehlo.add %18, %arg19 : tensor<32xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %22 = stablehlo.multiply %17, %21 : tensor<20x32xf32>
    %23 = stablehlo.broadcast_in_dim %arg20, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %25 = stablehlo.add %22, %24 : tensor<20x32xf32>
    %cst_5 = stablehlo.constant dense<3.125000e-02> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %27 = stablehlo.divide %25, %26 : tensor<20x32xf32>
    %28 = call @round(%27) : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %30 = stablehlo.add %28, %29 : tensor<20x32xf32>
    %c = stablehlo.constant dense<-128> : tensor<i32>
    %c_7 = stablehlo.constant dense<127> : tensor<i32>
    %31 = call @clip(%30, %c, %c_7) : (tensor<20x32xf32>, tensor<i32>, tensor<i32>) -> tensor<20x32xf32>
    %32 = stablehlo.convert %31 : (tensor<20x32xf32>) -> tensor<20x32xi8>
    %33 = stablehlo.dot_general %32, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x32xi8>, tensor<32x32xi8>) -> tensor<20x32xi32>
    %34 = stablehlo.convert %arg1 : (tensor<32x32xi8>) -> tensor<32x32xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %35 = stablehlo.reduce(%34 init: %c_8) applies stablehlo.add across dimensions = [0] : (tensor<32x32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_9 = stablehlo.constant dense<2> : tensor<i32>
    %36 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %37 = stablehlo.multiply %36, %35 : tensor<32xi32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %40 = stablehlo.subtract %33, %39 : tensor<20x32xi32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %43 = stablehlo.add %40, %42 : tensor<20x32xi32>
    %44 = stablehlo.convert %43 : (tensor<20x32xi32>) -> tensor<20x32xf32>
    %45 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %47 = stablehlo.multiply %44, %46 : tensor<20x32xf32>
    %cst_10 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %49 = stablehlo.divide %47, %48 : tensor<20x32xf32>
    %50 = call @round(%49) : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %52 = stablehlo.add %50, %51 : tensor<20x32xf32>
    %c_12 = stablehlo.constant dense<-128> : tensor<i32>
    %c_13 = stablehlo.constant dense<127> : tensor<i32>
    %53 = call @clip(%52, %c_12, %c_13) : (tensor<20x32xf32>, tensor<i32>, tensor<i32>) -> tensor<20x32xf32>
    %54 = stablehlo.convert %53 : (tensor<20x32xf32>) -> tensor<20x32xi8>
    %55 = stablehlo.reshape %54 : (tensor<20x32xi8>) -> tensor<20x4x8xi8>
    %56 = stablehlo.transpose %55, dims = [1, 0, 2] : (tensor<20x4x8xi8>) -> tensor<4x20x8xi8>
    %57 = stablehlo.dot_general %32, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x32xi8>, tensor<32x32xi8>) -> tensor<20x32xi32>
    %58 = stablehlo.convert %arg4 : (tensor<32x32xi8>) -> tensor<32x32xi32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %59 = stablehlo.reduce(%58 init: %c_14) applies stablehlo.add across dimensions = [0] : (tensor<32x32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_15 = stablehlo.constant dense<2> : tensor<i32>
    %60 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %61 = stablehlo.multiply %60, %59 : tensor<32xi32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %64 = stablehlo.subtract %57, %63 : tensor<20x32xi32>
    %65 = stablehlo.broadcast_in_dim %arg6, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %67 = stablehlo.add %64, %66 : tensor<20x32xi32>
    %68 = stablehlo.convert %67 : (tensor<20x32xi32>) -> tensor<20x32xf32>
    %69 = stablehlo.broadcast_in_dim %arg5, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %70 = stablehlo.broadcast_in_dim %69, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %71 = stablehlo.multiply %68, %70 : tensor<20x32xf32>
    %cst_16 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %73 = stablehlo.divide %71, %72 : tensor<20x32xf32>
    %74 = call @round(%73) : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %cst_17 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %76 = stablehlo.add %74, %75 : tensor<20x32xf32>
    %c_18 = stablehlo.constant dense<-128> : tensor<i32>
    %c_19 = stablehlo.constant dense<127> : tensor<i32>
    %77 = call @clip(%76, %c_18, %c_19) : (tensor<20x32xf32>, tensor<i32>, tensor<i32>) -> tensor<20x32xf32>
    %78 = stablehlo.convert %77 : (tensor<20x32xf32>) -> tensor<20x32xi8>
    %79 = stablehlo.reshape %78 : (tensor<20x32xi8>) -> tensor<20x4x8xi8>
    %80 = stablehlo.transpose %79, dims = [1, 0, 2] : (tensor<20x4x8xi8>) -> tensor<4x20x8xi8>
    %81 = stablehlo.dot_general %32, %arg7, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x32xi8>, tensor<32x32xi8>) -> tensor<20x32xi32>
    %82 = stablehlo.convert %arg7 : (tensor<32x32xi8>) -> tensor<32x32xi32>
    %c_20 = stablehlo.constant dense<0> : tensor<i32>
    %83 = stablehlo.reduce(%82 init: %c_20) applies stablehlo.add across dimensions = [0] : (tensor<32x32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_21 = stablehlo.constant dense<2> : tensor<i32>
    %84 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %85 = stablehlo.multiply %84, %83 : tensor<32xi32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %88 = stablehlo.subtract %81, %87 : tensor<20x32xi32>
    %89 = stablehlo.broadcast_in_dim %arg9, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %91 = stablehlo.add %88, %90 : tensor<20x32xi32>
    %92 = stablehlo.convert %91 : (tensor<20x32xi32>) -> tensor<20x32xf32>
    %93 = stablehlo.broadcast_in_dim %arg8, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %95 = stablehlo.multiply %92, %94 : tensor<20x32xf32>
    %cst_22 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %97 = stablehlo.divide %95, %96 : tensor<20x32xf32>
    %98 = call @round(%97) : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %100 = stablehlo.add %98, %99 : tensor<20x32xf32>
    %c_24 = stablehlo.constant dense<-128> : tensor<i32>
    %c_25 = stablehlo.constant dense<127> : tensor<i32>
    %101 = call @clip(%100, %c_24, %c_25) : (tensor<20x32xf32>, tensor<i32>, tensor<i32>) -> tensor<20x32xf32>
    %102 = stablehlo.convert %101 : (tensor<20x32xf32>) -> tensor<20x32xi8>
    %103 = stablehlo.reshape %102 : (tensor<20x32xi8>) -> tensor<20x4x8xi8>
    %104 = stablehlo.transpose %103, dims = [1, 0, 2] : (tensor<20x4x8xi8>) -> tensor<4x20x8xi8>
    %105 = stablehlo.dot_general %56, %80, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<4x20x8xi8>, tensor<4x20x8xi8>) -> tensor<4x20x20xi32>
    %106 = stablehlo.convert %105 : (tensor<4x20x20xi32>) -> tensor<4x20x20xf32>
    %cst_26 = stablehlo.constant dense<0.00138106791> : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<4x20x20xf32>
    %108 = stablehlo.multiply %106, %107 : tensor<4x20x20xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %109 = stablehlo.reduce(%108 init: %cst_27) applies stablehlo.maximum across dimensions = [2] : (tensor<4x20x20xf32>, tensor<f32>) -> tensor<4x20xf32>
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x20xf32>
    %111 = stablehlo.maximum %110, %109 : tensor<4x20xf32>
    %112 = stablehlo.broadcast_in_dim %111, dims = [0, 1] : (tensor<4x20xf32>) -> tensor<4x20x1xf32>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2] : (tensor<4x20x1xf32>) -> tensor<4x20x20xf32>
    %114 = stablehlo.subtract %108, %113 : tensor<4x20x20xf32>
    %115 = stablehlo.exponential %114 : tensor<4x20x20xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %116 = stablehlo.reduce(%115 init: %cst_29) applies stablehlo.add across dimensions = [2] : (tensor<4x20x20xf32>, tensor<f32>) -> tensor<4x20xf32>
    %117 = stablehlo.broadcast_in_dim %116, dims = [0, 1] : (tensor<4x20xf32>) -> tensor<4x20x1xf32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [0, 1, 2] : (tensor<4x20x1xf32>) -> tensor<4x20x20xf32>
    %119 = stablehlo.divide %115, %118 : tensor<4x20x20xf32>
    %cst_30 = stablehlo.constant dense<0.00392156886> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<4x20x20xf32>
    %121 = stablehlo.divide %119, %120 : tensor<4x20x20xf32>
    %122 = call @round_0(%121) : (tensor<4x20x20xf32>) -> tensor<4x20x20xf32>
    %cst_31 = stablehlo.constant dense<-1.280000e+02> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<4x20x20xf32>
    %124 = stablehlo.add %122, %123 : tensor<4x20x20xf32>
    %c_32 = stablehlo.constant dense<-128> : tensor<i32>
    %c_33 = stablehlo.constant dense<127> : tensor<i32>
    %125 = call @clip_1(%124, %c_32, %c_33) : (tensor<4x20x20xf32>, tensor<i32>, tensor<i32>) -> tensor<4x20x20xf32>
    %126 = stablehlo.convert %125 : (tensor<4x20x20xf32>) -> tensor<4x20x20xi8>
    %127 = stablehlo.convert %126 : (tensor<4x20x20xi8>) -> tensor<4x20x20xi32>
    %c_34 = stablehlo.constant dense<-128> : tensor<i32>
    %128 = stablehlo.broadcast_in_dim %c_34, dims = [] : (tensor<i32>) -> tensor<4x20x20xi32>
    %129 = stablehlo.subtract %127, %128 : tensor<4x20x20xi32>
    %130 = stablehlo.convert %104 : (tensor<4x20x8xi8>) -> tensor<4x20x8xi32>
    %131 = stablehlo.dot_general %129, %130, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x20x20xi32>, tensor<4x20x8xi32>) -> tensor<4x20x8xi32>
    %132 = stablehlo.convert %131 : (tensor<4x20x8xi32>) -> tensor<4x20x8xf32>
    %cst_35 = stablehlo.constant dense<2.45098054E-4> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<4x20x8xf32>
    %134 = stablehlo.multiply %132, %133 : tensor<4x20x8xf32>
    %cst_36 = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %135 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<4x20x8xf32>
    %136 = stablehlo.divide %134, %135 : tensor<4x20x8xf32>
    %137 = call @round_2(%136) : (tensor<4x20x8xf32>) -> tensor<4x20x8xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %138 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<4x20x8xf32>
    %139 = stablehlo.add %137, %138 : tensor<4x20x8xf32>
    %c_38 = stablehlo.constant dense<-128> : tensor<i32>
    %c_39 = stablehlo.constant dense<127> : tensor<i32>
    %140 = call @clip_3(%139, %c_38, %c_39) : (tensor<4x20x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x20x8xf32>
    %141 = stablehlo.convert %140 : (tensor<4x20x8xf32>) -> tensor<4x20x8xi8>
    %142 = stablehlo.transpose %141, dims = [1, 0, 2] : (tensor<4x20x8xi8>) -> tensor<20x4x8xi8>
    %143 = stablehlo.reshape %142 : (tensor<20x4x8xi8>) -> tensor<20x32xi8>
    %144 = stablehlo.dot_general %143, %arg10, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x32xi8>, tensor<32x32xi8>) -> tensor<20x32xi32>
    %145 = stablehlo.convert %arg10 : (tensor<32x32xi8>) -> tensor<32x32xi32>
    %c_40 = stablehlo.constant dense<0> : tensor<i32>
    %146 = stablehlo.reduce(%145 init: %c_40) applies stablehlo.add across dimensions = [0] : (tensor<32x32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_41 = stablehlo.constant dense<0> : tensor<i32>
    %147 = stablehlo.broadcast_in_dim %c_41, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %148 = stablehlo.multiply %147, %146 : tensor<32xi32>
    %149 = stablehlo.broadcast_in_dim %148, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %150 = stablehlo.broadcast_in_dim %149, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %151 = stablehlo.subtract %144, %150 : tensor<20x32xi32>
    %152 = stablehlo.broadcast_in_dim %arg12, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %153 = stablehlo.broadcast_in_dim %152, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %154 = stablehlo.add %151, %153 : tensor<20x32xi32>
    %155 = stablehlo.convert %154 : (tensor<20x32xi32>) -> tensor<20x32xf32>
    %156 = stablehlo.broadcast_in_dim %arg11, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %158 = stablehlo.multiply %155, %157 : tensor<20x32xf32>
    %159 = stablehlo.add %arg0, %158 : tensor<20x32xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %160 = stablehlo.reduce(%159 init: %cst_42) applies stablehlo.add across dimensions = [1] : (tensor<20x32xf32>, tensor<f32>) -> tensor<20xf32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %cst_43 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %162 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %163 = stablehlo.divide %161, %162 : tensor<20x1xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %165 = stablehlo.subtract %159, %164 : tensor<20x32xf32>
    %166 = stablehlo.multiply %165, %165 : tensor<20x32xf32>
    %cst_44 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %167 = stablehlo.reduce(%166 init: %cst_44) applies stablehlo.add across dimensions = [1] : (tensor<20x32xf32>, tensor<f32>) -> tensor<20xf32>
    %168 = stablehlo.broadcast_in_dim %167, dims = [0] : (tensor<20xf32>) -> tensor<20x1xf32>
    %cst_45 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %169 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %170 = stablehlo.divide %168, %169 : tensor<20x1xf32>
    %171 = stablehlo.broadcast_in_dim %163, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %172 = stablehlo.subtract %159, %171 : tensor<20x32xf32>
    %cst_46 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %173 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<20x1xf32>
    %174 = stablehlo.add %170, %173 : tensor<20x1xf32>
    %175 = stablehlo.rsqrt %174 : tensor<20x1xf32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 1] : (tensor<20x1xf32>) -> tensor<20x32xf32>
    %177 = stablehlo.multiply %172, %176 : tensor<20x32xf32>
    %cst_47 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %178 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<32xf32>
    %179 = stablehlo.add %178, %arg21 : tensor<32xf32>
    %180 = stablehlo.broadcast_in_dim %179, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %181 = stablehlo.broadcast_in_dim %180, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %182 = stablehlo.multiply %177, %181 : tensor<20x32xf32>
    %183 = stablehlo.broadcast_in_dim %arg22, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %185 = stablehlo.add %182, %184 : tensor<20x32xf32>
    %cst_48 = stablehlo.constant dense<3.125000e-02> : tensor<f32>
    %186 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %187 = stablehlo.divide %185, %186 : tensor<20x32xf32>
    %188 = call @round(%187) : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %cst_49 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %189 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %190 = stablehlo.add %188, %189 : tensor<20x32xf32>
    %c_50 = stablehlo.constant dense<-128> : tensor<i32>
    %c_51 = stablehlo.constant dense<127> : tensor<i32>
    %191 = call @clip(%190, %c_50, %c_51) : (tensor<20x32xf32>, tensor<i32>, tensor<i32>) -> tensor<20x32xf32>
    %192 = stablehlo.convert %191 : (tensor<20x32xf32>) -> tensor<20x32xi8>
    %193 = stablehlo.dot_general %192, %arg13, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x32xi8>, tensor<32x128xi8>) -> tensor<20x128xi32>
    %194 = stablehlo.convert %arg13 : (tensor<32x128xi8>) -> tensor<32x128xi32>
    %c_52 = stablehlo.constant dense<0> : tensor<i32>
    %195 = stablehlo.reduce(%194 init: %c_52) applies stablehlo.add across dimensions = [0] : (tensor<32x128xi32>, tensor<i32>) -> tensor<128xi32>
    %c_53 = stablehlo.constant dense<2> : tensor<i32>
    %196 = stablehlo.broadcast_in_dim %c_53, dims = [] : (tensor<i32>) -> tensor<128xi32>
    %197 = stablehlo.multiply %196, %195 : tensor<128xi32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [1] : (tensor<128xi32>) -> tensor<1x128xi32>
    %199 = stablehlo.broadcast_in_dim %198, dims = [0, 1] : (tensor<1x128xi32>) -> tensor<20x128xi32>
    %200 = stablehlo.subtract %193, %199 : tensor<20x128xi32>
    %201 = stablehlo.broadcast_in_dim %arg15, dims = [1] : (tensor<128xi32>) -> tensor<1x128xi32>
    %202 = stablehlo.broadcast_in_dim %201, dims = [0, 1] : (tensor<1x128xi32>) -> tensor<20x128xi32>
    %203 = stablehlo.add %200, %202 : tensor<20x128xi32>
    %204 = stablehlo.convert %203 : (tensor<20x128xi32>) -> tensor<20x128xf32>
    %205 = stablehlo.broadcast_in_dim %arg14, dims = [1] : (tensor<128xf32>) -> tensor<1x128xf32>
    %206 = stablehlo.broadcast_in_dim %205, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<20x128xf32>
    %207 = stablehlo.multiply %204, %206 : tensor<20x128xf32>
    %208 = stablehlo.multiply %207, %207 : tensor<20x128xf32>
    %209 = stablehlo.multiply %208, %207 : tensor<20x128xf32>
    %cst_54 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %210 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %211 = stablehlo.multiply %210, %209 : tensor<20x128xf32>
    %212 = stablehlo.add %207, %211 : tensor<20x128xf32>
    %cst_55 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %213 = stablehlo.broadcast_in_dim %cst_55, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %214 = stablehlo.multiply %213, %212 : tensor<20x128xf32>
    %215 = stablehlo.tanh %214 : tensor<20x128xf32>
    %cst_56 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %216 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %217 = stablehlo.add %216, %215 : tensor<20x128xf32>
    %cst_57 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %218 = stablehlo.broadcast_in_dim %cst_57, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %219 = stablehlo.multiply %218, %217 : tensor<20x128xf32>
    %220 = stablehlo.multiply %207, %219 : tensor<20x128xf32>
    %cst_58 = stablehlo.constant dense<3.125000e-02> : tensor<f32>
    %221 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %222 = stablehlo.divide %220, %221 : tensor<20x128xf32>
    %223 = call @round_4(%222) : (tensor<20x128xf32>) -> tensor<20x128xf32>
    %cst_59 = stablehlo.constant dense<-1.000000e+02> : tensor<f32>
    %224 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %225 = stablehlo.add %223, %224 : tensor<20x128xf32>
    %c_60 = stablehlo.constant dense<-128> : tensor<i32>
    %c_61 = stablehlo.constant dense<127> : tensor<i32>
    %226 = call @clip_5(%225, %c_60, %c_61) : (tensor<20x128xf32>, tensor<i32>, tensor<i32>) -> tensor<20x128xf32>
    %227 = stablehlo.convert %226 : (tensor<20x128xf32>) -> tensor<20x128xi8>
    %228 = stablehlo.dot_general %227, %arg16, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<20x128xi8>, tensor<128x32xi8>) -> tensor<20x32xi32>
    %229 = stablehlo.convert %arg16 : (tensor<128x32xi8>) -> tensor<128x32xi32>
    %c_62 = stablehlo.constant dense<0> : tensor<i32>
    %230 = stablehlo.reduce(%229 init: %c_62) applies stablehlo.add across dimensions = [0] : (tensor<128x32xi32>, tensor<i32>) -> tensor<32xi32>
    %c_63 = stablehlo.constant dense<-100> : tensor<i32>
    %231 = stablehlo.broadcast_in_dim %c_63, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %232 = stablehlo.multiply %231, %230 : tensor<32xi32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %235 = stablehlo.subtract %228, %234 : tensor<20x32xi32>
    %236 = stablehlo.broadcast_in_dim %arg18, dims = [1] : (tensor<32xi32>) -> tensor<1x32xi32>
    %237 = stablehlo.broadcast_in_dim %236, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<20x32xi32>
    %238 = stablehlo.add %235, %237 : tensor<20x32xi32>
    %239 = stablehlo.convert %238 : (tensor<20x32xi32>) -> tensor<20x32xf32>
    %240 = stablehlo.broadcast_in_dim %arg17, dims = [1] : (tensor<32xf32>) -> tensor<1x32xf32>
    %241 = stablehlo.broadcast_in_dim %240, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<20x32xf32>
    %242 = stablehlo.multiply %239, %241 : tensor<20x32xf32>
    %243 = stablehlo.add %159, %242 : tensor<20x32xf32>
    return %243 : tensor<20x32xf32>
  }
  func.func private @round(%arg0: tensor<20x32xf32>) -> tensor<20x32xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<20x32xf32>
    return %0 : tensor<20x32xf32>
  }
  func.func private @clip(%arg0: tensor<20x32xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<20x32xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<20x32xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<20x32xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<20x32xf32>
    return %5 : tensor<20x32xf32>
  }
  func.func private @round_0(%arg0: tensor<4x20x20xf32>) -> tensor<4x20x20xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x20x20xf32>
    return %0 : tensor<4x20x20xf32>
  }
  func.func private @clip_1(%arg0: tensor<4x20x20xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x20x20xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x20x20xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x20x20xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x20x20xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x20x20xf32>
    return %5 : tensor<4x20x20xf32>
  }
  func.func private @round_2(%arg0: tensor<4x20x8xf32>) -> tensor<4x20x8xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x20x8xf32>
    return %0 : tensor<4x20x8xf32>
  }
  func.func private @clip_3(%arg0: tensor<4x20x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x20x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x20x8xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x20x8xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x20x8xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x20x8xf32>
    return %5 : tensor<4x20x8xf32>
  }
  func.func private @round_4(%arg0: tensor<20x128xf32>) -> tensor<20x128xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<20x128xf32>
    return %0 : tensor<20x128xf32>
  }
  func.func private @clip_5(%arg0: tensor<20x128xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<20x128xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<20x128xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<20x128xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<20x128xf32>
    return %5 : tensor<20x128xf32>
  }
}
