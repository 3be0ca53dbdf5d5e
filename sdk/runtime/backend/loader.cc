// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/backend/loader.h"

#include <collet/dynamic_library.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hlo/base/files.h"
#include "hlo/base/utf8.h"
#include "sdk/runtime/backend/calling.h"
#include "sdk/runtime/backend/caught.h"

namespace collet::runtime {
namespace {

namespace fs = std::filesystem;

// Returns the least severity that is printed on stderr if no log function is set.
int32_t least_shown() {
  const char* level = std::getenv("COLLET_LOG");
  const std::string_view text = level ? level : "";
  if (text == "debug") return COLLET_LOG_DEBUG;
  if (text == "info") return COLLET_LOG_INFO;
  return text == "error" ? COLLET_LOG_ERROR : COLLET_LOG_WARNING;
}

// The receiver of messages: the log function of the last client that was opened with one and has not been closed.
struct Sink {
  LogFunction function;
  void* user;
  int running = 0;  // number of calls that have not returned
};

struct Log {
  std::mutex mutex;
  std::condition_variable returned;
  std::vector<std::shared_ptr<Sink>> sinks;
};

// Returns the log, which is never destroyed, because plugins may log while the process exits.
Log& the_log() {
  static Log* log = new Log;
  return *log;
}

// The calls of log functions in which this thread currently is, innermost first.
struct Inside {
  const Sink* sink;
  const Inside* outer;
};
thread_local const Inside* inside = nullptr;

int calls_of_this_thread(const Sink& sink) {
  int n = 0;
  for (const Inside* i = inside; i; i = i->outer) n += i->sink == &sink;
  return n;
}

void host_log(void*, int32_t severity, const char* message) {
  (void)caught([&] {
    log_message(severity, message ? message : "");
    return ok_status();
  });
}

const collet_host& host() {
  static const collet_host host = {sizeof(collet_host), COLLET_ABI_MAJOR, COLLET_ABI_MINOR,
                                   COLLET_OPSET,        nullptr,          host_log};
  return host;
}

// A name without a slash never means a file of the working folder. dlopen would look for it elsewhere.
bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos;
}

std::string file_name(std::string_view name) {
  return "libcollet_backend_" + std::string(name) + ".so";
}

std::vector<std::string> folders() {
  std::vector<std::string> out;
  if (const char* path = std::getenv("COLLET_BACKEND_PATH")) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon) out.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&search_places), &self) && self.dli_fname) {
    std::error_code ignored;
    fs::path here = fs::weakly_canonical(self.dli_fname, ignored).parent_path();
    out.push_back((here.parent_path() / "lib" / "collet" / "backends").string());
    if (here.filename() != "lib") out.push_back((here / "collet" / "backends").string());
  }
  // Removes duplicates, because the environment may name the installed folder, too.
  std::vector<std::string> places;
  for (std::string& place : out)
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(std::move(place));
  return places;
}

Expected<std::string> find(std::string_view name) {
  std::error_code ignored;
  if (is_path(name)) {
    if (!fs::exists(name, ignored)) return not_found("there is no backend library '" + std::string(name) + "'");
    return std::string(name);
  }
  for (const std::string& folder : folders()) {
    const fs::path candidate = fs::path(folder) / file_name(name);
    if (fs::exists(candidate, ignored)) return candidate.string();
  }
  std::string message = "there is no backend '" + std::string(name) + "'; looked for " + search_places(name);
  if (name.ends_with(".so")) message += "; the path of a library has a slash: ./" + std::string(name);
  return not_found(message);
}

std::string abi_version() {
  return std::to_string(COLLET_ABI_MAJOR) + "." + std::to_string(COLLET_ABI_MINOR);
}

// Returns an error if the table cannot be used.
Status check_table(const collet_backend& table) {
  if (table.abi_major != COLLET_ABI_MAJOR)
    return failed_precondition("was built for ABI " + std::to_string(table.abi_major) + ", this is ABI " +
                               std::to_string(COLLET_ABI_MAJOR));
  const struct {
    const char* name;
    bool there;
    bool needed;
  } functions[] = {
      {"open", table.open != nullptr, true},
      {"close", table.close != nullptr, true},
      {"device_info", table.device_info != nullptr, true},
      {"alloc", table.alloc != nullptr, true},
      {"free", table.free != nullptr, true},
      {"copy", table.copy != nullptr, true},
      {"compile", table.compile != nullptr, table.supports != nullptr},
      {"execute", table.execute != nullptr, table.compile != nullptr},
      {"release", table.release != nullptr, table.compile != nullptr},
  };
  for (const auto& f : functions)
    if (f.needed && !f.there) return failed_precondition("lacks the function '" + std::string(f.name) + "'");
  if (table.reserved != 0) return failed_precondition("has a reserved field in its table that is not zero");
  return ok_status();
}

int count_functions(const collet_backend& t) {
  return (t.open != nullptr) + (t.close != nullptr) + (t.device_info != nullptr) + (t.alloc != nullptr) +
         (t.free != nullptr) + (t.copy != nullptr) + (t.supports != nullptr) + (t.compile != nullptr) +
         (t.execute != nullptr) + (t.release != nullptr) + (t.query != nullptr);
}

Expected<std::unique_ptr<Library>> load(const std::string& path) {
  const std::string who = "backend library '" + path + "' ";
  // The dynamic loader would block on a pipe.
  if (const Status readable = InputFile::open(path).status(); !readable.ok())
    return failed_precondition(who + "cannot be loaded: " + readable.message());
  const Calling loading("loading", path);  // constructors of the library run here
  void* handle = dlopen(path.c_str(), private_library());
  if (!handle) {
    const char* why = dlerror();
    return failed_precondition(who + "cannot be loaded: " + (why ? why : "no reason given"));
  }
  void* symbol = dlsym(handle, "collet_backend_entry");
  if (!symbol) return failed_precondition(who + "is no backend: it does not export collet_backend_entry");
  collet_backend_entry_fn entry;
  std::memcpy(&entry, &symbol, sizeof entry);

  const collet_backend* table = nullptr;
  collet_error error{};
  const Calling calling("collet_backend_entry", path);
  const collet_status code = entry(&host(), &table, &error);
  if (code != COLLET_OK)
    return from_c(code, error, who + "collet_backend_entry, called by an SDK of ABI " + abi_version());
  if (!table) return failed_precondition(who + "handed out no table");
  constexpr uint32_t kHead = offsetof(collet_backend, open);
  if (table->struct_size < kHead || table->struct_size > (1u << 16) ||
      (table->struct_size - kHead) % sizeof(collet_backend_entry_fn) != 0)
    return failed_precondition(who + "has a table of " + std::to_string(table->struct_size) +
                               " bytes, which cannot be");
  auto library = std::make_unique<Library>();
  library->path = path;
  std::memcpy(&library->table, table, std::min<size_t>(table->struct_size, sizeof(collet_backend)));
  COLLET_TRY(check_table(library->table).with_prefix(who));
  library->functions = count_functions(library->table);
  return library;
}

}  // namespace

std::string search_places(std::string_view name) {
  std::string out;
  for (const std::string& folder : folders()) out += (out.empty() ? "" : ", ") + folder + "/" + file_name(name);
  return out;
}

bool library_exists(std::string_view name) {
  return find(name).ok();
}

Expected<const Library*> load_library(std::string_view name_or_path) {
  COLLET_ASSIGN(const std::string path, find(name_or_path));
  std::error_code ignored;
  const std::string key = fs::weakly_canonical(path, ignored).string();
  static std::mutex mutex;
  static auto* loaded = new std::map<std::string, std::unique_ptr<Library>>;  // plugins are never unloaded
  const std::lock_guard lock(mutex);
  auto& slot = (*loaded)[key];
  if (!slot) {
    COLLET_ASSIGN(slot, load(path));
  }
  return static_cast<const Library*>(slot.get());
}

void set_log(LogFunction function, void* user) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.sinks.push_back(std::make_shared<Sink>(Sink{function, user}));
}

namespace {

struct Message {
  int32_t severity;
  std::string text;
};
thread_local uint32_t log_scopes = 0;  // of this thread
thread_local bool has_kept =
    false;  // kept_messages is not empty; each call of the library reads this, which is cheaper
thread_local std::vector<Message> kept_messages;

// A log function may call the library, also to log or to close its own client, so no lock is held while it is called.
void pass_on(int32_t severity, const std::string& message) {
  Log& log = the_log();
  std::unique_lock lock(log.mutex);
  if (log.sinks.empty()) {
    if (severity >= least_shown()) std::fprintf(stderr, "collet: %s\n", message.c_str());
    return;
  }
  const std::shared_ptr<Sink> sink = log.sinks.back();
  ++sink->running;
  lock.unlock();
  const Inside here = {sink.get(), inside};
  inside = &here;
  (void)caught([&] {
    sink->function(sink->user, severity, message.c_str());
    return ok_status();
  });
  inside = here.outer;
  lock.lock();
  --sink->running;
  log.returned.notify_all();
}

void pass_on_kept() {
  if (!has_kept) return;
  has_kept = false;
  const std::vector<Message> messages = std::move(kept_messages);
  kept_messages.clear();
  for (const Message& one : messages) pass_on(one.severity, one.text);
}

}  // namespace

LogScope::LogScope() {
  ++log_scopes;
}

LogScope::~LogScope() {
  if (--log_scopes == 0) pass_on_kept();
}

void reset_log(LogFunction function, void* user) {
  pass_on_kept();
  Log& log = the_log();
  std::unique_lock lock(log.mutex);
  const auto it = std::find_if(log.sinks.rbegin(), log.sinks.rend(),
                               [&](const auto& sink) { return sink->function == function && sink->user == user; });
  if (it == log.sinks.rend()) return;
  const std::shared_ptr<Sink> sink = *it;
  log.sinks.erase(std::next(it).base());
  log.returned.wait(lock, [&] { return sink->running <= calls_of_this_thread(*sink); });
}

void log_message(int32_t severity, const std::string& text) {
  std::string message = printable(text);
  if (log_scopes == 0) return pass_on(severity, message);
  Log& log = the_log();
  std::unique_lock lock(log.mutex);
  const bool has_function = !log.sinks.empty();
  lock.unlock();
  // What goes to stderr is seen at once, also if the process is about to end.
  if (!has_function) return pass_on(severity, message);
  kept_messages.push_back({severity, std::move(message)});
  has_kept = true;
}

}  // namespace collet::runtime
