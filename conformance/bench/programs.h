// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The texts of cases/*.hlo and of the training step of templates/mnist, which the build compiles into the library.

namespace collet::bench::programs {

extern const char reduce_sum_fma[];
extern const char softmax[];
extern const char softmax_relu_dense[];
extern const char mnist_step[];
extern const char lstm[];
extern const char attention[];

}  // namespace collet::bench::programs
