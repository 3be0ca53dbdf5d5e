// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/exports.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace collet::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Exports, NamesBesidesTheEntry) {
  EXPECT_THAT(more_exports(OPEN_LIBRARY), ElementsAre("_Z13some_functionv", "some_data"));
  EXPECT_THAT(more_exports(HIDDEN_LIBRARY), IsEmpty());
}

TEST(Exports, OfOtherAndDamagedFilesNone) {
  EXPECT_THAT(more_exports("/nonexistent/library.so"), IsEmpty());
  EXPECT_THAT(more_exports(__FILE__), IsEmpty());
  std::ifstream in(OPEN_LIBRARY, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  const std::string path = ::testing::TempDir() + "/exports_test_damaged.so";
  for (const size_t size : {size_t{20}, size_t{64}, whole.size() / 2, whole.size() - 10}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    more_exports(path);
  }
  std::string other = whole;
  for (size_t i = 16; i < 64; ++i) other[i] = '\xff';
  std::ofstream(path, std::ios::binary) << other;
  EXPECT_THAT(more_exports(path), IsEmpty());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace collet::conformance
