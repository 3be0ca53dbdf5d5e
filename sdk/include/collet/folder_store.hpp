// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A store (processes.h) in a folder that all processes see: for processes that no frontend starts. C++17.

#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "error.h"
#include "processes.h"

namespace collet {

/// Keeps each value in a file of the folder, which exists and is empty when the first process starts. Thread-safe. The object
/// outlives the use of `store`.
class FolderStore {
 public:
  /// `rank`: number of this process; it only makes names of temporary files unlike.
  FolderStore(std::string folder, uint32_t rank)
      : folder_(std::move(folder)), rank_(rank), store_{sizeof(collet_store), 0, this, put, get} {}
  FolderStore(const FolderStore&) = delete;
  FolderStore& operator=(const FolderStore&) = delete;

  const collet_store* store() const { return &store_; }

 private:
  // Returns the path of a key; characters that a file's name cannot have, and '%', are written as "%" and two digits.
  std::filesystem::path path_of(const char* key) const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string name;
    for (; *key; ++key) {
      const auto c = static_cast<unsigned char>(*key);
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      if (plain)
        name += *key;
      else
        (name += '%') += {kDigits[c >> 4], kDigits[c & 15]};
    }
    return std::filesystem::path(folder_) / name;
  }

  // A value is written to another file first, and gets its name when it is complete.
  static collet_status put(void* user, const char* key, const void* value, uint64_t bytes, collet_error* error) {
    const auto& self = *static_cast<const FolderStore*>(user);
    try {
      const std::filesystem::path path = self.path_of(key);
      const std::filesystem::path draft = path.string() + "." + std::to_string(self.rank_);
      std::ofstream file(draft, std::ios::binary);
      file.write(static_cast<const char*>(value), static_cast<std::streamsize>(bytes));
      file.close();
      if (!file) return collet_set_error(error, COLLET_UNAVAILABLE, ("cannot write " + draft.string()).c_str());
      std::error_code failure;
      std::filesystem::create_hard_link(draft, path, failure);  // fails if the key has a value
      std::error_code ignored;
      std::filesystem::remove(draft, ignored);
      if (!failure) return COLLET_OK;
      if (failure == std::errc::file_exists)
        return collet_set_error(error, COLLET_ALREADY_EXISTS, ("the key has a value: " + std::string(key)).c_str());
      return collet_set_error(error, COLLET_UNAVAILABLE, (path.string() + ": " + failure.message()).c_str());
    } catch (const std::exception& e) {
      return collet_set_error(error, COLLET_UNAVAILABLE, e.what());
    }
  }

  static collet_status get(void* user, const char* key, uint32_t timeout_ms,
                           void (*take)(void* out, const void* value, uint64_t bytes), void* out, collet_error* error) {
    const auto& self = *static_cast<const FolderStore*>(user);
    try {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
      const std::filesystem::path path = self.path_of(key);
      while (true) {
        std::ifstream file(path, std::ios::binary);
        if (file) {
          const std::string value((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
          take(out, value.data(), value.size());
          return COLLET_OK;
        }
        if (std::chrono::steady_clock::now() >= end)
          return collet_set_error(error, COLLET_DEADLINE_EXCEEDED, ("nobody has stored " + std::string(key)).c_str());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    } catch (const std::exception& e) {
      return collet_set_error(error, COLLET_UNAVAILABLE, e.what());
    }
  }

  std::string folder_;
  uint32_t rank_;
  collet_store store_;
};

}  // namespace collet
