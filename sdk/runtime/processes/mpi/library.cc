// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/processes/mpi/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace collet::mpi {
namespace {

// What MPI's headers define alike in all implementations that are supported.
constexpr int kSuccess = 0, kThreadSerialized = 2, kThreadMultiple = 3;
constexpr int kMostText = 8192;  // of MPI_Get_library_version and MPI_Error_string, in any implementation
constexpr int kTag = 0x434c;     // of all messages: the communicators are the transport's own

// The binary interface of Open MPI 2 to 5: handles are addresses of objects.
struct OpenMpi {
  using Handle = void*;
  struct Status {
    int source, tag, error, cancelled;
    size_t count;
  };
  static constexpr int kAnySource = -1;
  explicit OpenMpi(void* library)
      : world(dlsym(library, "ompi_mpi_comm_world")),
        byte(dlsym(library, "ompi_mpi_byte")),
        errors_return(dlsym(library, "ompi_mpi_errors_return")) {}
  bool is_complete() const { return world && byte && errors_return; }
  Handle world, byte, errors_return;
};

// That of MPICH 3.1 and later, Intel MPI and MVAPICH: handles are numbers.
struct Mpich {
  using Handle = int;
  struct Status {
    int count_low, count_high, source, tag, error;
  };
  static constexpr int kAnySource = -2;
  explicit Mpich(void*) {}
  bool is_complete() const { return true; }
  Handle world = 0x44000000, byte = 0x4c00010d, errors_return = 0x54000001;
};

template <typename Abi>
class Of : public Library {
  using Native = typename Abi::Handle;
  using Status = typename Abi::Status;

 public:
  explicit Of(void* library, std::string version) : abi_(library) {
    version_ = std::move(version);
    if (!abi_.is_complete())
      throw Error(COLLET_FAILED_PRECONDITION, version_ + " lacks objects that its interface has");
    find(library, init_thread_, "MPI_Init_thread");
    find(library, initialized_, "MPI_Initialized");
    find(library, query_thread_, "MPI_Query_thread");
    find(library, comm_rank_, "MPI_Comm_rank");
    find(library, comm_size_, "MPI_Comm_size");
    find(library, set_errhandler_, "MPI_Comm_set_errhandler");
    find(library, idup_, "MPI_Comm_idup");
    find(library, isend_, "MPI_Isend");
    find(library, irecv_, "MPI_Irecv");
    find(library, test_, "MPI_Test");
    find(library, iprobe_, "MPI_Iprobe");
    find(library, get_count_, "MPI_Get_count");
    find(library, error_string_, "MPI_Error_string");
    find(library, finalize_, "MPI_Finalize");
    find(library, finalized_, "MPI_Finalized");
    initialize();
  }

  ~Of() override {
    int finalized = 1;
    if (is_ours_ && !is_abandoned_ && finalized_(&finalized) == kSuccess && !finalized) finalize_();
  }

  Handle start_copy(Handle& communicator) override {
    // MPI writes the communicator when the copy is made.
    auto* const place = new Native{};
    Native request{};
    check(idup_(abi_.world, place, &request), "MPI_Comm_idup");
    communicator = std::bit_cast<uintptr_t>(place);
    return to_handle(request);
  }
  Handle send(const void* data, uint64_t bytes, int to, Handle communicator) override {
    Native request{};
    check(isend_(data, static_cast<int>(bytes), abi_.byte, to, kTag, of(communicator), &request), "MPI_Isend");
    return to_handle(request);
  }
  Handle receive(void* data, uint64_t bytes, int from, Handle communicator) override {
    Native request{};
    check(irecv_(data, static_cast<int>(bytes), abi_.byte, from, kTag, of(communicator), &request), "MPI_Irecv");
    return to_handle(request);
  }
  bool done(Handle& request) override {
    Native native = to_native(request);
    int flag = 0;
    Status status{};
    check(test_(&native, &flag, &status), "MPI_Test");
    request = to_handle(native);
    return flag != 0;
  }
  bool probe(Handle communicator, int& from, uint64_t& bytes) override {
    int flag = 0, count = 0;
    Status status{};
    check(iprobe_(Abi::kAnySource, kTag, of(communicator), &flag, &status), "MPI_Iprobe");
    if (!flag) return false;
    check(get_count_(&status, abi_.byte, &count), "MPI_Get_count");
    from = status.source;
    bytes = static_cast<uint64_t>(count);
    return true;
  }

 private:
  static Handle to_handle(Native native) {
    if constexpr (std::is_pointer_v<Native>)
      return std::bit_cast<uintptr_t>(native);
    else
      return static_cast<uint32_t>(native);
  }
  static Native to_native(Handle handle) {
    if constexpr (std::is_pointer_v<Native>)
      return std::bit_cast<Native>(static_cast<uintptr_t>(handle));
    else
      return static_cast<Native>(static_cast<uint32_t>(handle));
  }
  // The communicator at the place that start_copy has returned.
  static Native of(Handle communicator) { return *std::bit_cast<Native*>(static_cast<uintptr_t>(communicator)); }

  template <typename Function>
  void find(void* library, Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (!function) throw Error(COLLET_FAILED_PRECONDITION, version_ + " lacks " + name);
  }

  void check(int code, const char* what) {
    if (code == kSuccess) return;
    char text[kMostText] = {};
    int length = 0;
    error_string_(code, text, &length);
    throw Error(COLLET_UNAVAILABLE, std::string(what) + ": " + text);
  }

  void initialize() {
    int before = 0, provided = 0;
    if (initialized_(&before) != kSuccess) throw Error(COLLET_UNAVAILABLE, "MPI_Initialized fails");
    if (before) {
      query_thread_(&provided);
      // Calls of the program are not made under lock().
      if (provided < kThreadMultiple)
        throw Error(COLLET_FAILED_PRECONDITION,
                    "the program has initialised MPI without MPI_THREAD_MULTIPLE, which the transport needs then");
    } else {
      if (init_thread_(nullptr, nullptr, kThreadMultiple, &provided) != kSuccess)
        throw Error(COLLET_UNAVAILABLE, "MPI_Init_thread fails (" + version_ + ")");
      is_ours_ = true;
      if (provided < kThreadSerialized)
        throw Error(COLLET_FAILED_PRECONDITION, version_ + " allows calls of one thread only");
    }
    check(set_errhandler_(abi_.world, abi_.errors_return), "MPI_Comm_set_errhandler");
    check(comm_rank_(abi_.world, &rank_), "MPI_Comm_rank");
    check(comm_size_(abi_.world, &size_), "MPI_Comm_size");
  }

  Abi abi_;
  bool is_ours_ = false;
  int (*init_thread_)(int*, char***, int, int*) = nullptr;
  int (*initialized_)(int*) = nullptr;
  int (*query_thread_)(int*) = nullptr;
  int (*comm_rank_)(Native, int*) = nullptr;
  int (*comm_size_)(Native, int*) = nullptr;
  int (*set_errhandler_)(Native, Native) = nullptr;
  int (*idup_)(Native, Native*, Native*) = nullptr;
  int (*isend_)(const void*, int, Native, int, int, Native, Native*) = nullptr;
  int (*irecv_)(void*, int, Native, int, int, Native, Native*) = nullptr;
  int (*test_)(Native*, int*, Status*) = nullptr;
  int (*iprobe_)(int, int, Native, int*, Status*) = nullptr;
  int (*get_count_)(const Status*, Native, int*) = nullptr;
  int (*error_string_)(int, char*, int*) = nullptr;
  int (*finalize_)() = nullptr;
  int (*finalized_)(int*) = nullptr;
};

void* load(std::string& tried) {
  const char* chosen = std::getenv("COLLET_MPI_LIBRARY");
  // Open MPI's own plugins need its symbols to be global.
  constexpr int kFlags = RTLD_LAZY | RTLD_GLOBAL;
  if (chosen && *chosen) {
    tried = chosen;
    return dlopen(chosen, kFlags);
  }
  // Where several are installed, that of the launcher.
  std::vector<const char*> names = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
  if (!std::getenv("OMPI_COMM_WORLD_SIZE") && std::getenv("PMI_SIZE"))
    std::rotate(names.begin(), names.begin() + 1, names.end());
  for (const char* name : names) {
    tried += (tried.empty() ? "" : ", ") + std::string(name);
    if (void* library = dlopen(name, kFlags)) return library;
  }
  return nullptr;
}

std::unique_ptr<Library> open() {
  std::string tried;
  void* const library = load(tried);
  if (!library) {
    const char* why = dlerror();
    throw Error(COLLET_NOT_FOUND, "MPI cannot be loaded; tried " + tried +
                                      " (Debian: libopenmpi3; COLLET_MPI_LIBRARY names " +
                                      "another one): " + (why ? why : ""));
  }
  using Version = int(char*, int*);
  auto* const get_version = reinterpret_cast<Version*>(dlsym(library, "MPI_Get_library_version"));
  char text[kMostText] = {};
  int length = 0;
  if (!get_version || get_version(text, &length) != kSuccess)
    throw Error(COLLET_FAILED_PRECONDITION, tried + " is no library of MPI 3: it lacks MPI_Get_library_version");
  std::string version(text);
  version.resize(std::min({version.find('\n'), version.find(','), version.size()}));
  if (version.starts_with("Open MPI")) return std::make_unique<Of<OpenMpi>>(library, version);
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (version.starts_with(name)) return std::make_unique<Of<Mpich>>(library, version);
  throw Error(COLLET_FAILED_PRECONDITION, "this MPI has a binary interface that the transport does not know: '" +
                                              version + "'; it knows those of Open MPI, MPICH, Intel MPI and MVAPICH");
}

}  // namespace

Library& Library::get() {
  static const std::unique_ptr<Library> library = open();  // its destructor ends MPI
  return *library;
}

}  // namespace collet::mpi
