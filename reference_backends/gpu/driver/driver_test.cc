// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/driver/driver.h"

#include <gmock/gmock.h>

namespace collet::gpu {
namespace {

using testing::HasSubstr;

TEST(Driver, SaysThatThereIsNone) {
  Driver driver;
  const codegen::Status status = open_driver("libcollet_no_such_driver.so", driver);
  EXPECT_EQ(status.code(), COLLET_UNAVAILABLE);
  EXPECT_THAT(status.message(), HasSubstr("no CUDA driver: "));
  EXPECT_THAT(status.message(), HasSubstr("libcollet_no_such_driver.so"));
}

TEST(Driver, SaysWhatALibraryLacks) {
  Driver driver;
  const codegen::Status status = open_driver("libc.so.6", driver);
  EXPECT_EQ(status.code(), COLLET_UNIMPLEMENTED);
  EXPECT_THAT(status.message(), HasSubstr("the CUDA driver lacks cuInit"));
}

TEST(Driver, ResultsHaveTexts) {
  EXPECT_EQ(result_text(CUDA_ERROR_OUT_OF_MEMORY), "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  EXPECT_EQ(result_text(static_cast<CUresult>(77777)), "CUDA error 77777");
}

}  // namespace
}  // namespace collet::gpu
