// SPDX-License-Identifier: Apache-2.0
#include "hlo/base/secret_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "hlo/base/descriptor.h"
#include "hlo/base/files.h"
#include "hlo/base/sha256.h"

namespace collet {
namespace {

constexpr size_t kShortest = 16, kLongest = 4096;

}  // namespace

Expected<SecretKey> SecretKey::of_environment() {
  SecretKey key;
  const char* path = secure_getenv("COLLET_KEY_FILE");
  if (!path || !*path) return key;
  const std::string what = "COLLET_KEY_FILE: " + std::string(path);
  const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts{};
  if (fd.get() < 0 || fstat(fd.get(), &facts) != 0)
    return invalid_argument(system_error(what + " cannot be read", errno).message());
  if (!S_ISREG(facts.st_mode)) return invalid_argument(what + " is not a regular file");
  if (facts.st_uid != geteuid() && facts.st_uid != 0)
    return Status(Code::PermissionDenied, what + " belongs to another user");
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Status(Code::PermissionDenied, what + " may be read or written by other users (chmod go= makes it a key)");
  COLLET_ASSIGN(key.key_, read_stream(fd.get(), what, kLongest));
  if (key.key_.size() < kShortest)
    return invalid_argument(what + " has " + std::to_string(key.key_.size()) + " bytes; a key has 16 to 4096");
  return key;
}

std::string SecretKey::sign(std::string_view purpose, std::string_view bytes) const {
  if (!*this) return {};
  std::string text(purpose);
  text += '\0';
  text += bytes;
  const Sha256::Digest digest = hmac_sha256(key_, text);
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

bool SecretKey::accepts(std::string_view purpose, std::string_view bytes, std::string_view signature) const {
  if (!*this) return true;
  const std::string right = sign(purpose, bytes);
  if (signature.size() != right.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < right.size(); ++i)
    difference = static_cast<unsigned char>(difference | static_cast<unsigned char>(right[i] ^ signature[i]));
  return difference == 0;
}

}  // namespace collet
