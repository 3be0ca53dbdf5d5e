// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <string>
#include <string_view>

#include "hlo/base/status.h"

namespace collet::runtime {

/// A loaded plugin; it is never unloaded.
struct Library {
  std::string path;
  collet_backend table{};  ///< a copy; functions that the plugin's version lacks are null
  int functions = 0;       ///< number of functions that it supplies
};

/// Finds and loads a backend by name or path; see collet_client_options. Loads a library once.
Expected<const Library*> load_library(std::string_view name_or_path);
/// Returns the paths at which a backend of that name is searched, in order.
std::string search_places(std::string_view name);
/// True if a backend of that name exists.
bool library_exists(std::string_view name);

/// The log function, which gets messages of the plugins and of the library. The last one that was set is called; if
/// none is set, messages go to stderr.
using LogFunction = void (*)(void* user, int32_t severity, const char* message);
void set_log(LogFunction function, void* user);
/// Removes the log function; returns when no other thread is calling it any more.
void reset_log(LogFunction function, void* user);
void log_message(int32_t severity, const std::string& message);

/// While a thread has objects of this class, its messages for a log function are kept; the destructor of the first object passes them on.
/// So a log function, which may call the library, is called when the thread holds no lock and is in no function of a backend.
class LogScope {
 public:
  LogScope();
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;
};

}  // namespace collet::runtime
