// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/secret_key.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hlo/base/sha256.h"

namespace collet {
namespace {

using ::testing::HasSubstr;

std::string hex(const Sha256::Digest& digest) {
  std::string out;
  for (const unsigned char byte : digest) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", byte);
    out += text;
  }
  return out;
}

// Test cases 1, 2, 3 and 6 of RFC 4231.
TEST(Hmac, GivesTheExamplesOfTheStandard) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

class SecretKeyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path = ::testing::TempDir() + "collet_key_" + std::to_string(getpid());
    setenv("COLLET_KEY_FILE", path.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("COLLET_KEY_FILE");
    std::filesystem::remove_all(path);
  }
  void write(const std::string& bytes, mode_t mode = 0600) const {
    std::ofstream(path) << bytes;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  std::string path;
};

TEST_F(SecretKeyTest, SignsUnderItsKeyAndPurpose) {
  write(std::string(32, 'k'));
  const Expected<SecretKey> key = SecretKey::of_environment();
  ASSERT_TRUE(key.ok()) << key.status().to_string();
  ASSERT_TRUE(static_cast<bool>(*key));
  const std::string signature = key->sign("a", "bytes");
  EXPECT_EQ(signature.size(), SecretKey::kBytes);
  EXPECT_TRUE(key->accepts("a", "bytes", signature));
  EXPECT_FALSE(key->accepts("b", "bytes", signature));
  EXPECT_FALSE(key->accepts("a", "bytez", signature));
  EXPECT_FALSE(key->accepts("a", "bytes", ""));
  EXPECT_FALSE(key->accepts("a", "bytes", signature.substr(1)));
  write(std::string(31, 'k') + "l");
  EXPECT_FALSE(SecretKey::of_environment()->accepts("a", "bytes", signature));
}

TEST_F(SecretKeyTest, WithoutAKeyNothingIsSignedAndAllIsAccepted) {
  unsetenv("COLLET_KEY_FILE");
  const Expected<SecretKey> key = SecretKey::of_environment();
  ASSERT_TRUE(key.ok());
  EXPECT_FALSE(static_cast<bool>(*key));
  EXPECT_EQ(key->sign("a", "bytes"), "");
  EXPECT_TRUE(key->accepts("a", "bytes", ""));
}

TEST_F(SecretKeyTest, RefusesKeysThatOthersMayKnow) {
  for (const mode_t mode : {0640, 0604, 0620, 0602}) {
    write(std::string(32, 'k'), mode);
    const Status status = SecretKey::of_environment().status();
    EXPECT_EQ(status.code(), Code::PermissionDenied) << std::oct << mode;
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
  if (geteuid() != 0) return;
  write(std::string(32, 'k'));
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(SecretKey::of_environment().status().code(), Code::PermissionDenied);
}

TEST_F(SecretKeyTest, RefusesWhatIsNoKey) {
  EXPECT_THAT(SecretKey::of_environment().status().message(), HasSubstr("No such file"));
  write("short");
  EXPECT_THAT(SecretKey::of_environment().status().message(), HasSubstr("has 5 bytes"));
  write(std::string(4097, 'k'));
  EXPECT_EQ(SecretKey::of_environment().status().code(), Code::InvalidArgument);
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(SecretKey::of_environment().status().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace collet
