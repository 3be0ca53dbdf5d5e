// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "sdk/pjrt/api/table.h"

// This program is linked with none of the libraries that the plugin uses.
namespace collet::pjrt {
namespace {

namespace fs = std::filesystem;

const PJRT_Api* table_of(const std::string& path, int flags) {
  void* const handle = dlopen(path.c_str(), flags);
  if (!handle) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  void* const symbol = dlsym(handle, "GetPjrtApi");
  const PJRT_Api* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof get);
  return get ? get() : nullptr;
}

TEST(Entry, ShowsNoLibraryOfThePluginToTheProcess) {
  const PJRT_Api* const api = table_of(COLLET_PJRT_LIBRARY, RTLD_LAZY | RTLD_GLOBAL);
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(api->pjrt_api_version.minor_version, PJRT_API_MINOR);
  EXPECT_NE(dlsym(RTLD_DEFAULT, "GetPjrtApi"), nullptr);  // of the entry, as it was asked for
  for (const char* name : {"collet_client_open", "collet_compile", "_ZTVN6google8protobuf11MessageLiteE"})
    EXPECT_EQ(dlsym(RTLD_DEFAULT, name), nullptr) << name;
}

TEST(Entry, SaysWhichFileIsMissing) {
  const fs::path folder = fs::path(testing::TempDir()) / "collet_entry_test";
  fs::create_directories(folder);
  const fs::path copy = folder / "libcollet_pjrt.so";
  fs::copy_file(COLLET_PJRT_LIBRARY, copy, fs::copy_options::overwrite_existing);
  testing::internal::CaptureStderr();
  EXPECT_EQ(table_of(copy.string(), RTLD_NOW | RTLD_LOCAL), nullptr);
  EXPECT_NE(testing::internal::GetCapturedStderr().find((folder / "libcollet_pjrt_private.so").string()),
            std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace collet::pjrt
