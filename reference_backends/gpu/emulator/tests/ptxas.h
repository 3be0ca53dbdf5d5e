// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace collet::gpu::testing_only {

/// Returns the path of the CUDA toolkit's assembler, or an empty string.
inline std::string find_ptxas() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return {};
}

/// Assembles a text and returns the errors of ptxas; empty if there are none.
inline std::string assemble(const std::string& text, int sm = 80) {
  char name[] = "/tmp/collet_ptxas_XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return "no temporary file";
  close(file);
  std::ofstream(name) << text;
  const std::string log = std::string(name) + ".log";
  const std::string command =
      find_ptxas() + " -O0 -arch=sm_" + std::to_string(sm) + " " + name + " -o /dev/null > " + log + " 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  std::remove(name);
  std::remove(log.c_str());
  return status == 0 ? "" : said.str() + " (status " + std::to_string(status) + ")";
}

}  // namespace collet::gpu::testing_only
