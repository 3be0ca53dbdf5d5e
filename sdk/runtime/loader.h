// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::runtime {

/// A loaded plugin; lives as long as the process.
struct Library {
  std::string path;
  collet_backend table{};  ///< a copy: what the plugin's version lacks is null
  int functions = 0;       ///< how many of the table it supplies
};

/// Finds and loads a backend by name or path; see collet_client_options. Loads a library once.
Expected<const Library*> load_library(std::string_view name_or_path);
/// Returns the places where a backend of that name is looked for, in order.
std::string search_places(std::string_view name);
/// Whether a backend of that name is there.
bool library_exists(std::string_view name);

/// Sink of messages: the plugins' and our own. The last one that was set is told; without any, stderr is.
using LogFunction = void (*)(void* user, int32_t severity, const char* message);
void set_log(LogFunction function, void* user);
/// Takes it away again; returns when other threads are out of it.
void reset_log(LogFunction function, void* user);
void log_message(int32_t severity, const std::string& message);

}  // namespace collet::runtime
