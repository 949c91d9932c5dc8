// PMIx, the interface of launchers: this process's rank, and a text that rank 0 sends to all. The library is loaded
// only if a launcher is present, so programs run without it.

#include <dlfcn.h>

#include <cstring>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "doors/amudp/spmd.hpp"

#if __has_include(<pmix.h>)
#include <pmix.h>
#define FAIRLEAD_HAS_PMIX 1
#endif

namespace fairlead::amudp {

bool is_started_by_pmix() {
  return base::environment("PMIX_RANK") != nullptr && base::environment("PMIX_NAMESPACE") != nullptr;
}

#ifdef FAIRLEAD_HAS_PMIX

namespace {

constexpr const char* kKey = "fairlead.am.job";
pmix_proc_t self;

struct Pmix {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence) fence = nullptr;
  decltype(&PMIx_Error_string) error = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;

  bool load(std::string& why) {
    void* library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      why = fmt::format("a launcher speaks PMIx, and libpmix.so.2 is missing ({}): install libpmix2", dlerror());
      return false;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    const bool is_whole = find(init, "PMIx_Init") && find(get, "PMIx_Get") && find(put, "PMIx_Put") &&
                          find(commit, "PMIx_Commit") && find(fence, "PMIx_Fence") &&
                          find(error, "PMIx_Error_string") && find(finalize, "PMIx_Finalize");
    if (!is_whole) why = "this libpmix.so.2 lacks a function of PMIx 4";
    return is_whole;
  }
};

Pmix& pmix() {
  static Pmix the_pmix;
  return the_pmix;
}

}  // namespace

std::optional<Launched> launched_by_pmix(std::string& error) {
  if (!pmix().load(error)) return std::nullopt;
  if (const pmix_status_t status = pmix().init(&self, nullptr, 0); status != PMIX_SUCCESS) {
    error = fmt::format("the launcher did not take us by PMIx: {}", pmix().error(status));
    return std::nullopt;
  }
  pmix_proc_t job;
  std::memset(&job, 0, sizeof job);
  std::memcpy(job.nspace, self.nspace, sizeof job.nspace);
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  const pmix_status_t status = pmix().get(&job, PMIX_JOB_SIZE, nullptr, 0, &value);
  if (status != PMIX_SUCCESS || value->type != PMIX_UINT32 || value->data.uint32 == 0) {
    error = "the launcher does not tell the number of processes by PMIx";
    return std::nullopt;
  }
  return Launched{static_cast<int>(self.rank), static_cast<int>(value->data.uint32)};
}

std::optional<std::string> exchange_by_pmix(const std::string& text_of_first, std::string& error) {
  if (self.rank == 0) {
    pmix_value_t value;
    std::memset(&value, 0, sizeof value);
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(text_of_first.c_str());
    pmix().put(PMIX_GLOBAL, kKey, &value);
    pmix().commit();
  }
  pmix_status_t status = pmix().fence(nullptr, 0, nullptr, 0);
  pmix_value_t* found = nullptr;
  pmix_proc_t first = self;
  first.rank = 0;
  if (status == PMIX_SUCCESS) status = pmix().get(&first, kKey, nullptr, 0, &found);
  if (status != PMIX_SUCCESS || found->type != PMIX_STRING) {
    error = fmt::format("rank 0 could not be asked for the job's address by PMIx: {}", pmix().error(status));
    return std::nullopt;
  }
  return found->data.string;
}

void leave_pmix() {
  if (pmix().finalize != nullptr) pmix().finalize(nullptr, 0);
}

#else

void leave_pmix() {}

std::optional<Launched> launched_by_pmix(std::string& error) {
  error = "a launcher speaks PMIx, and this library was built without pmix.h: install libpmix-dev, and build again";
  return std::nullopt;
}

std::optional<std::string> exchange_by_pmix(const std::string&, std::string&) {
  return std::nullopt;
}

#endif

}  // namespace fairlead::amudp
