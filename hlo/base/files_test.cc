// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

namespace collet {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string name = (fs::temp_directory_path() / "collet_files_XXXXXX").string();
    if (const char* made = mkdtemp(name.data())) folder_ = made;
    std::ofstream(path("text"), std::ios::binary) << "0123456789";
  }
  ~FilesTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string message(const Expected<std::string>& outcome) {
    EXPECT_EQ(outcome.status().code(), Code::InvalidArgument);
    return outcome.status().message();
  }

  std::string folder_;
};

TEST_F(FilesTest, RegularFile_IsReadUpToTheLimit) {
  const auto all = read_file(path("text"), 10);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, "0123456789");
  EXPECT_NE(message(read_file(path("text"), 9)).find("more than the 9 bytes"), std::string::npos);
}

TEST_F(FilesTest, PartsOfAFile) {
  const auto file = InputFile::open(path("text"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(*file->read(3, 4), "3456");
  EXPECT_EQ(*file->read(10, 0), "");
  EXPECT_NE(message(file->read(8, 3)).find("too short"), std::string::npos);
  EXPECT_FALSE(file->read(11, 0).ok());
  EXPECT_FALSE(file->read(1, UINT64_MAX).ok());
}

// What stands in the place of a new file is removed: a link is not followed.
TEST_F(FilesTest, NewFile_ReplacesALink) {
  fs::create_symlink(path("text"), path("link"));
  EXPECT_TRUE(write_new_file(path("link"), "new").ok());
  EXPECT_EQ(*read_file(path("link"), 10), "new");
  EXPECT_EQ(*read_file(path("text"), 10), "0123456789");
  EXPECT_TRUE(write_new_file(path("link"), "").ok());
  EXPECT_EQ(*read_file(path("link"), 10), "");
  fs::create_directory(path("folder"));
  EXPECT_FALSE(write_new_file(path("folder"), "new").ok());
}

// A sparse file costs no disk, but its contents would cost memory.
TEST_F(FilesTest, LargeFile_IsRefusedBeforeItIsRead) {
  std::ofstream(path("large")).close();
  fs::resize_file(path("large"), uint64_t{1} << 40);
  EXPECT_FALSE(read_file(path("large"), kMostProgramBytes).ok());
}

TEST_F(FilesTest, WhatIsNoRegularFile_IsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(path("folder"));
  for (const auto& [target, kind] : {std::pair<std::string, std::string>{"/dev/zero", "a device"},
                                     {path("pipe"), "a pipe"},
                                     {path("folder"), "a folder"}}) {
    EXPECT_NE(message(read_file(target, 100)).find("is " + kind), std::string::npos) << target;
    fs::create_symlink(target, path("link"));
    EXPECT_NE(message(read_file(path("link"), 100)).find("is " + kind), std::string::npos) << target;
    fs::remove(path("link"));
  }
  EXPECT_NE(message(read_file(path("none"), 100)).find("No such file"), std::string::npos);
}

TEST_F(FilesTest, Pipe_IsReadToItsEndWhereOneMayBe) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const uint64_t most : {10, 9}) {
    std::thread writer([&] { std::ofstream(path("pipe"), std::ios::binary) << "0123456789"; });
    const auto read = read_file_or_pipe(path("pipe"), most);
    writer.join();
    EXPECT_EQ(read.ok(), most == 10);
  }
  EXPECT_FALSE(read_file_or_pipe("/dev/zero", 100).ok());
  EXPECT_EQ(*read_file_or_pipe(path("text"), 100), "0123456789");
}

TEST_F(FilesTest, WrittenFile_TakesThePlaceOfTheOld) {
  ASSERT_TRUE(write_file(path("text"), "new").ok());
  EXPECT_EQ(*read_file(path("text"), 100), "new");
}

TEST_F(FilesTest, FailureToWrite_SaysWhatIsMissing) {
  const Status full = write_file("/dev/full", "x", "it");
  EXPECT_EQ(full.code(), Code::ResourceExhausted);
  EXPECT_EQ(full.message(), "it cannot be written: No space left on device");
  EXPECT_EQ(write_file(path("none/x"), "x").code(), Code::FailedPrecondition);
  EXPECT_EQ(system_error("x", EACCES).code(), Code::PermissionDenied);
}

TEST_F(FilesTest, StreamWithoutEnd_StopsAtTheLimit) {
  const int zero = open("/dev/zero", O_RDONLY);
  EXPECT_NE(message(read_stream(zero, "stdin", 5000)).find("stdin has more than the 5000"), std::string::npos);
  close(zero);
}

}  // namespace
}  // namespace collet
