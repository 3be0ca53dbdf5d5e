// SPDX-License-Identifier: Apache-2.0
#include <collet/backend.h>
#include <collet/codegen/source_compiler.h>
#include <collet/hash.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <sstream>
#include <vector>

extern char** environ;

namespace collet::codegen {
namespace {

namespace fs = std::filesystem;

/// A folder that is removed with all that it holds.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "collet_source_XXXXXX").string();
    if (!error && mkdtemp(path.data())) path_ = path;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool read_file(const std::string& path, std::string& out) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  out = all.str();
  return file.good();
}

bool write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return !file.fail();
}

std::vector<std::string> words_of(const std::string& command, const std::string& in, const std::string& out) {
  std::vector<std::string> words;
  std::istringstream rest(command);
  for (std::string word; rest >> word;) {
    for (const auto& [key, value] : {std::pair<std::string, const std::string&>{"{in}", in}, {"{out}", out}}) {
      if (const size_t at = word.find(key); at != std::string::npos) word.replace(at, key.size(), value);
    }
    words.push_back(std::move(word));
  }
  return words;
}

using Clock = std::chrono::steady_clock;

/// Reads what a process writes until it closes the pipe. Returns false if it does not until `end`.
bool read_until_closed(int pipe, Clock::time_point end, std::string& out) {
  for (char buffer[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waits{pipe, POLLIN, 0};
    constexpr int64_t kMost = 1 << 20;
    if (poll(&waits, 1, static_cast<int>(std::min<int64_t>(left, kMost))) <= 0) continue;
    const ssize_t count = read(pipe, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    out.append(buffer, static_cast<size_t>(count));
  }
}

/// Runs a command in a process group of its own. `status` is what waitpid gives.
Status run(const std::vector<std::string>& words, double seconds, std::string& said, int& status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {COLLET_RESOURCE_EXHAUSTED, std::string("pipe: ") + std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return {error == ENOENT ? COLLET_NOT_FOUND : COLLET_RESOURCE_EXHAUSTED,
            "the compiler '" + words[0] + "' does not start: " + std::strerror(error)};
  }
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  bool ended = read_until_closed(ends[0], end, said);
  close(ends[0]);
  status = 0;
  // A process may close its output and go on. A host that ignores SIGCHLD leaves no status for us.
  for (pid_t found = 0; ended && (found == 0 || (found < 0 && errno == EINTR));) {
    found = waitpid(process, &status, WNOHANG);
    if (found == 0) usleep(500);
    ended = found != 0 || Clock::now() < end;
  }
  if (!ended) {
    kill(-process, SIGKILL);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  }
  // Where a process is started by fork, as under emulators, the child says so.
  constexpr int kNotStarted = 127;
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted && said.empty())
    return {COLLET_NOT_FOUND, "the compiler '" + words[0] + "' does not start"};
  if (ended) return {};
  return {COLLET_DEADLINE_EXCEEDED,
          "the compiler '" + words[0] + "' was stopped after " + std::to_string(static_cast<int64_t>(seconds)) + " s"};
}

/// Returns the line in the first message that names a line of `in`; 0 if there is none. With `in` empty, the compiler has a name of its own
/// for the text: a message has ":LINE:COLUMN:" then.
uint64_t line_of(const std::string& messages, const std::string& in) {
  for (size_t at = messages.find(in + ":"); at != std::string::npos; at = messages.find(in + ":", at + 1)) {
    const char* const number = messages.c_str() + at + in.size() + 1;
    char* end = nullptr;
    const uint64_t line = std::strtoull(number, &end, 10);
    const bool is_place =
        !in.empty() || (end != number && *end == ':' && std::isdigit(static_cast<unsigned char>(end[1])));
    if (line != 0 && is_place) return line;
  }
  return 0;
}

/// Returns what the first message that names a line of `in` is about: the function of the text, and the ops that it computes.
std::string place_of(const std::string& messages, const std::string& in, const std::string& text) {
  const uint64_t line = line_of(messages, in);
  if (line == 0) return {};
  std::istringstream lines(text);
  std::string ops, function, found, last;
  for (uint64_t n = 1; n <= line && std::getline(lines, last); ++n) {
    if (last.rfind("/* ", 0) == 0) ops = last.substr(3, last.size() - 6);
    const bool begins =
        last.rfind("static ", 0) == 0 || last.rfind("void ", 0) == 0;  // those of OpenCL C are not static
    if (begins && last.find(") {") != std::string::npos) {
      const size_t open = last.find('('), begin = last.rfind(' ', open) + 1;
      function = last.substr(begin, open - begin);
      found = ops;
      ops.clear();
    }
  }
  if (function.empty()) return {};
  return "in " + function + (found.empty() ? "" : ", which computes " + found) + ", at\n" + last + "\n";
}

}  // namespace

struct CompilerCache::State {
  explicit State(SourceCompiler c) : compiler(std::move(c)) {}

  using Key = std::pair<uint64_t, uint64_t>;
  Key key_of(const std::string& text) const {
    const std::string how = compiler.command + '\n' + compiler.version + '\n';
    const auto hash = [&](uint64_t seed) {
      return collet_hash_bytes(collet_hash_bytes(seed, how.data(), how.size()), text.data(), text.size());
    };
    return {hash(1), hash(2)};
  }
  std::string file_of(const Key& key) const {
    char name[64];
    std::snprintf(name, sizeof name, "%016llx%016llx.code", static_cast<unsigned long long>(key.first),
                  static_cast<unsigned long long>(key.second));
    return compiler.cache_folder + "/" + name;
  }
  Status run_command(const std::string& text, std::string& code, std::string& messages) const;
  Status call(const std::string& text, std::string& code) const;

  const SourceCompiler compiler;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const std::string>> known;
};

Status CompilerCache::State::run_command(const std::string& text, std::string& code, std::string& messages) const {
  const Folder folder;
  const std::string in = folder.path() + "/program" + compiler.suffix, out = folder.path() + "/program.out";
  if (folder.path().empty() || !write_file(in, text))
    return {COLLET_RESOURCE_EXHAUSTED, "no file can be written to the folder for temporary files"};
  const std::vector<std::string> words = words_of(compiler.command, in, out);
  if (words.empty()) return {COLLET_INVALID_ARGUMENT, "the command of the compiler is empty"};
  int status = 0;
  COLLET_CODEGEN_TRY(run(words, compiler.time_limit, messages, status));
  if (status == 0 && read_file(out, code)) return {};
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                          : status == 0       ? "no output file"
                                              : "exit status " + std::to_string(WEXITSTATUS(status));
  return {COLLET_INTERNAL,
          "the compiler '" + words[0] + "' failed, " + how + " " + place_of(messages, in, text) + messages};
}

Status CompilerCache::State::call(const std::string& text, std::string& code) const {
  if (!compiler.compile) return {COLLET_INVALID_ARGUMENT, "SourceCompiler has neither a command nor a function"};
  try {
    code = compiler.compile(text);
  } catch (const std::bad_alloc&) {
    return {COLLET_RESOURCE_EXHAUSTED, "no memory is left for the compiler"};
  } catch (const std::exception& e) {
    return {COLLET_INTERNAL, "the compiler failed: " + place_of(e.what(), "", text) + e.what()};
  }
  return {};
}

CompilerCache::CompilerCache(SourceCompiler compiler) : state_(std::make_unique<State>(std::move(compiler))) {}
CompilerCache::~CompilerCache() = default;

Status CompilerCache::compile(const std::string& text, std::shared_ptr<const std::string>& code,
                              std::string& messages) const {
  code.reset();
  const State::Key key = state_->key_of(text);
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (const auto found = state_->known.find(key); found != state_->known.end()) code = found->second.lock();
    if (code) return {};
  }
  const bool on_disk = !state_->compiler.cache_folder.empty();
  std::string made;
  if (!on_disk || !read_file(state_->file_of(key), made)) {
    COLLET_CODEGEN_TRY(state_->compiler.command.empty() ? state_->call(text, made)
                                                        : state_->run_command(text, made, messages));
    if (on_disk) {  // renamed, so that no other process reads a part of it; a folder that is full is no error
      std::string own = state_->file_of(key) + ".XXXXXX";  // other threads, and machines, may write the same entry
      const int file = mkstemp(own.data());
      std::error_code error;
      if (file >= 0) {
        close(file);
        if (write_file(own, made))
          fs::rename(own, state_->file_of(key), error);
        else
          error = std::make_error_code(std::errc::io_error);
        if (error) fs::remove(own, error);
      }
    }
  }
  code = std::make_shared<const std::string>(std::move(made));
  const std::lock_guard<std::mutex> lock(state_->mutex);
  std::erase_if(state_->known, [](const auto& entry) { return entry.second.expired(); });
  state_->known[key] = code;
  return {};
}

}  // namespace collet::codegen
