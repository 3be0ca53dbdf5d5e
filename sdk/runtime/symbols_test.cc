// SPDX-License-Identifier: Apache-2.0
#include <collet/dynamic_library.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace collet {
namespace {

/// Opens the library that calls a function, and returns what the function returns to it.
int ask(const std::string& library, int flags) {
  void* const handle = dlopen(library.c_str(), flags);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return 0;
  }
  void* const symbol = dlsym(handle, "collet_test_ask");
  int (*function)() = nullptr;
  std::memcpy(&function, &symbol, sizeof function);
  const int answer = function ? function() : 0;
  dlclose(handle);
  return answer;
}

// A process may have loaded another library with the same names for all to see, as those of TensorFlow are.
TEST(Symbols, LibrariesUseThoseThatTheyWereLinkedWith) {
  void* const other = dlopen(COLLET_TEST_OTHER, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(other, nullptr) << dlerror();
  EXPECT_EQ(ask(COLLET_TEST_USER, RTLD_NOW | RTLD_LOCAL), 2);  // of the other library
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(RTLD_DEEPBIND)
  EXPECT_EQ(ask(COLLET_TEST_USER, private_library()), 1);
#endif
  dlclose(other);
}

}  // namespace
}  // namespace collet
