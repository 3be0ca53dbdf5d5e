// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/gpu/machine_code.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

namespace collet::gpu {

namespace {

namespace fs = std::filesystem;
using Artifact = std::pair<std::string, std::string>;

/// Returns the path of a program of the CUDA toolkit; empty if it is not found.
std::string find_tool(const char* name) {
  const char* const path = std::getenv("PATH");
  std::string folders = (path ? std::string(path) : std::string()) + ":/usr/local/cuda/bin";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    const std::string file = folder + "/" + name;
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return {};
}

/// Runs a command without a shell. Returns its output to stdout and stderr, and whether it succeeded.
std::pair<std::string, bool> run(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe", false};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count = 0; child > 0 && (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  const bool ended = child > 0 && waitpid(child, &status, 0) == child;
  return {std::move(text), ended && WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

/// A temporary folder, which the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "collet-gpu-XXXXXX").string();
    if (const char* made = mkdtemp(pattern.data())) path_ = made;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  bool is_there() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Returns artifacts that describe the machine code of a PTX text, which is called `name`.ptx.
std::vector<Artifact> describe(const std::string& name, const std::string& ptx, const std::string& architecture) {
  const std::string sass = name + ".sass";
  const std::string ptxas = find_tool("ptxas");
  if (ptxas.empty()) return {{sass, "skipped: there is no ptxas on this machine\n"}};
  const Scratch scratch;
  if (!scratch.is_there()) return {{sass, "skipped: no folder for temporary files\n"}};
  const std::string source = scratch.file("module.ptx"), code = scratch.file("module.cubin");
  std::ofstream(source, std::ios::binary) << ptx;
  const auto [log, assembled] = run({ptxas, "-v", "-arch=" + architecture, "-o", code, source});
  std::vector<Artifact> out{{name + ".ptxas.txt", log}};
  if (!assembled) return out;
  const std::string disassembler = find_tool("nvdisasm"), dumper = find_tool("cuobjdump");
  if (!disassembler.empty()) {
    out.emplace_back(sass, run({disassembler, "-c", code}).first);
  } else if (!dumper.empty()) {
    out.emplace_back(sass, run({dumper, "-sass", code}).first);
  } else {
    out.emplace_back(sass, "skipped: there is neither nvdisasm nor cuobjdump on this machine\n");
  }
  return out;
}

class Compiler final : public kernel::ProgramCompiler {
 public:
  Compiler(std::shared_ptr<const kernel::ProgramCompiler> inner, std::string architecture)
      : inner_(std::move(inner)), architecture_(std::move(architecture)) {}

  void answer(const collet_program* program, const uint32_t* ops, uint32_t count,
              collet_verdict* verdicts) const override {
    inner_->answer(program, ops, count, verdicts);
  }
  std::unique_ptr<kernel::WholeProgram> compile(const collet_program* program, bool keep_artifacts,
                                                std::vector<uint32_t>* rejected) const override {
    auto out = inner_->compile(program, keep_artifacts, rejected);
    if (!out || !keep_artifacts) return out;
    std::vector<Artifact> more;
    constexpr std::string_view kEnd = ".ptx";
    for (const auto& [name, text] : out->artifacts) {
      if (name.size() <= kEnd.size() || name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) != 0) continue;
      for (Artifact& one : describe(name.substr(0, name.size() - kEnd.size()), text, architecture_)) {
        more.push_back(std::move(one));
      }
    }
    out->artifacts.insert(out->artifacts.end(), more.begin(), more.end());
    return out;
  }
  const char* pattern(uint32_t index) const override { return inner_->pattern(index); }

 private:
  std::shared_ptr<const kernel::ProgramCompiler> inner_;
  std::string architecture_;
};

}  // namespace

std::shared_ptr<const kernel::ProgramCompiler> with_machine_code(std::shared_ptr<const kernel::ProgramCompiler> inner,
                                                                 const std::string& architecture) {
  return std::make_shared<Compiler>(std::move(inner), architecture);
}

}  // namespace collet::gpu
