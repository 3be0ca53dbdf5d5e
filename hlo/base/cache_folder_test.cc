// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/cache_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace collet {
namespace {

namespace fs = std::filesystem;
using Kind = CacheFile::Kind;

class CacheFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path = ::testing::TempDir() + "collet_cache_folder_" + std::to_string(getpid());
    fs::remove_all(path);
  }
  void TearDown() override { fs::remove_all(path); }
  CacheFolder open() {
    Expected<CacheFolder> folder = CacheFolder::open(path, true);
    EXPECT_TRUE(folder.ok()) << folder.status().to_string();
    return *std::move(folder);
  }
  static std::string name(char digit) { return std::string(64, digit) + ".bin"; }
  fs::path file(char digit) const { return fs::path(path) / name(digit); }
  static std::vector<std::string> names(const std::vector<CacheFile>& files) {
    std::vector<std::string> out;
    for (const CacheFile& one : files) out.push_back(one.name);
    return out;
  }
  // Returns the number of a process that has ended.
  static pid_t ended() {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, nullptr, 0);
    return pid;
  }
  std::string path;
};

TEST_F(CacheFolderTest, KeepsEntriesForThisUserAlone) {
  const mode_t before = umask(0);
  const CacheFolder folder = open();
  EXPECT_TRUE(folder.write(name('a'), "text").ok());
  umask(before);
  EXPECT_EQ(folder.read(name('a')), "text");
  EXPECT_EQ(folder.read(name('b')), std::nullopt);
  struct stat facts{};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(file('a').c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
}

TEST_F(CacheFolderTest, RefusesFoldersOfOthers) {
  open();
  for (const mode_t mode : {0777, 01777, 0775, 0770}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(CacheFolder::open(path, true).status().code(), Code::PermissionDenied) << std::oct << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_TRUE(CacheFolder::open(path, true).ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(CacheFolder::open(path, true).status().code(), Code::PermissionDenied);
}

// Neither what others may write nor what is found through a link is read.
TEST_F(CacheFolderTest, ReadsOwnRegularFilesAlone) {
  const CacheFolder folder = open();
  for (const char digit : {'a', 'b', 'c'}) ASSERT_TRUE(folder.write(name(digit), "text").ok());
  ASSERT_EQ(chmod(file('a').c_str(), 0602), 0);
  ASSERT_EQ(chmod(file('b').c_str(), 0620), 0);
  fs::create_symlink(file('c'), file('d'));
  fs::create_directory(file('e'));
  ASSERT_EQ(mkfifo(file('f').c_str(), 0600), 0);
  for (const char digit : {'a', 'b', 'd', 'e', 'f'}) EXPECT_EQ(folder.read(name(digit)), std::nullopt) << digit;
  EXPECT_EQ(folder.read(name('c')), "text");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file('c').c_str(), 12345, 12345), 0);
    EXPECT_EQ(folder.read(name('c')), std::nullopt);
  }
  const auto files = folder.list();
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->size(), 6u);
  for (const CacheFile& one : *files) {
    if (one.name == name('c')) continue;
    EXPECT_EQ(one.kind, Kind::Foreign) << one.name;
  }
}

// A link in the place of an entry is replaced; what it leads to stays as it is.
TEST_F(CacheFolderTest, WritesThroughNoLink) {
  const CacheFolder folder = open();
  const std::string victim = path + "/victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, file('a'));
  EXPECT_TRUE(folder.write(name('a'), "text").ok());
  EXPECT_EQ(folder.read(name('a')), "text");
  std::string kept;
  std::getline(std::ifstream(victim), kept);
  EXPECT_EQ(kept, "precious");
}

// Names of files that are being written cannot be guessed, so nobody can put a link there before.
TEST_F(CacheFolderTest, NamesOfPartialFilesDiffer) {
  const CacheFolder folder = open();
  fs::create_directory(file('a'));  // the entry cannot be put in its place
  EXPECT_FALSE(folder.write(name('a'), "text").ok());
  EXPECT_EQ(names(*folder.list()), std::vector<std::string>{name('a')}) << "a partial file is left";
}

TEST_F(CacheFolderTest, RemovesWhatEndedProcessesLeft) {
  const CacheFolder folder = open();
  ASSERT_TRUE(folder.write(name('a'), "text").ok());
  const std::string dead = name('b') + "." + std::to_string(ended()) + ".0";
  const std::string running = name('c') + "." + std::to_string(getpid()) + ".0";
  const std::string elsewhere = name('d') + ".00000000." + std::to_string(ended()) + ".0123456789abcdef.part";
  const std::string old = name('e') + ".00000000.1.0123456789abcdef.part", other = "notes.txt";
  for (const std::string& one : {dead, running, elsewhere, old, other}) std::ofstream(path + "/" + one) << "x";
  fs::last_write_time(path + "/" + old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const auto removed = folder.trim(CacheFolder::kDefaultLimit);
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(names(*removed), ::testing::UnorderedElementsAre(dead, old));
  for (const std::string& one : {name('a'), running, elsewhere, other})
    EXPECT_TRUE(fs::exists(path + "/" + one)) << one;
}

// A process that is killed while it writes leaves a file, which the next trim removes.
TEST_F(CacheFolderTest, RemovesWhatAKilledWriterLeft) {
  const CacheFolder folder = open();
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit = {1 << 16, 1 << 16};  // the system kills the process in the middle of its file
    setrlimit(RLIMIT_FSIZE, &limit);
    static_cast<void>(folder.write(name('a'), std::string(1 << 20, 'x')));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto left = folder.list();
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().kind, Kind::Stale);
  EXPECT_EQ(folder.trim(CacheFolder::kDefaultLimit)->size(), 1u);
  EXPECT_EQ(folder.list()->size(), 0u);
}

TEST_F(CacheFolderTest, RemovesTheLeastRecentlyUsed) {
  const CacheFolder folder = open();
  int age = 100;
  for (const char digit : {'a', 'b', 'c', 'd'}) {
    ASSERT_TRUE(folder.write(name(digit), std::string(1000, 'x')).ok());
    fs::last_write_time(file(digit), fs::file_time_type::clock::now() - std::chrono::seconds(age--));
  }
  EXPECT_TRUE(folder.read(name('a')));  // now the last one used
  const auto removed = folder.trim(2500);
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(names(*removed), ::testing::ElementsAre(name('c'), name('b')));
  EXPECT_THAT(names(*folder.list()), ::testing::ElementsAre(name('a'), name('d')));
}

TEST_F(CacheFolderTest, TakesItsLimitFromTheEnvironment) {
  setenv("COLLET_CACHE_MIB", "3", 1);
  EXPECT_EQ(*CacheFolder::limit_of_environment(), uint64_t{3} << 20);
  for (const char* wrong : {"", "x", "3x", "-1", "99999999999999999999"}) {
    setenv("COLLET_CACHE_MIB", wrong, 1);
    const Status status = CacheFolder::limit_of_environment().status();
    EXPECT_EQ(status.code(), Code::InvalidArgument) << wrong;
    EXPECT_THAT(status.message(), ::testing::HasSubstr("COLLET_CACHE_MIB is '" + std::string(wrong) + "'"));
  }
  unsetenv("COLLET_CACHE_MIB");
  EXPECT_EQ(*CacheFolder::limit_of_environment(), CacheFolder::kDefaultLimit);
}

}  // namespace
}  // namespace collet
