// A call with an attribute that the kernel does not know.
module @window {
  func.func public @main(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @acme_attention(%q, %k, %v) {mhlo.backend_config = {scale = 1.0 : f32, window = 2 : i64}, api_version = 4 : i32} : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
