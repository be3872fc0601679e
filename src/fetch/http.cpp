#include "fetch/http.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "base/clock.h"
#include "base/error.h"

#ifdef FAIRWAY_CURL
#include <curl/curl.h>
#include <dlfcn.h>
#endif

namespace fairway::fetch {

#ifdef FAIRWAY_CURL

namespace {

// The library is opened when it is first needed, so that the program starts where it is not installed. Its header has macros of
// the functions' names, which check arguments and call by that name.
struct Curl {
  void* library = nullptr;
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&(curl_easy_setopt)) easy_setopt = nullptr;
  decltype(&(curl_easy_getinfo)) easy_getinfo = nullptr;
  bool complete = false;

  template <class Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
  Curl() : library(dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL)) {
    complete = library != nullptr && find(global_init, "curl_global_init") && find(easy_init, "curl_easy_init") &&
               find(easy_cleanup, "curl_easy_cleanup") && find(easy_perform, "curl_easy_perform") &&
               find(easy_strerror, "curl_easy_strerror") && find(easy_setopt, "curl_easy_setopt") &&
               find(easy_getinfo, "curl_easy_getinfo");
  }
};

const Curl& libcurl() {
  static const Curl opened;  // for good: it may have threads
  return opened;
}

// Exceptions must not pass through the library: kept here and thrown behind it.
struct Transfer {
  const HttpRequest& request;
  CURL* curl;
  bool begun = false, too_long = false, other_range = false, stopped = false, stalled = false;
  uint64_t at = 0;                    // of the next byte in the file
  int64_t range_at = -1;              // what the answer says of its beginning
  double last_heard = seconds_now();  // libcurl's own limit looks at the speed of the last five seconds
  std::exception_ptr error{};
};

long status_of(CURL* curl) {
  long status = 0;
  libcurl().easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

size_t on_header(char* text, size_t, size_t length, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.last_heard = seconds_now();
  std::string line(text, length);
  std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (line.starts_with("http/")) transfer.range_at = -1;  // of the answer behind a redirect
  constexpr std::string_view kRange = "content-range: bytes ";
  if (line.starts_with(kRange)) transfer.range_at = std::strtoll(line.c_str() + kRange.size(), nullptr, 10);
  return length;
}

bool begin_body(Transfer& transfer) {
  const bool part = status_of(transfer.curl) == 206;
  transfer.other_range = part && transfer.range_at != static_cast<int64_t>(transfer.request.from);
  if (transfer.other_range) return false;
  transfer.begun = true;
  transfer.at = part ? transfer.request.from : 0;
  transfer.request.begin(transfer.at);
  return true;
}

size_t on_body(char* bytes, size_t, size_t length, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.last_heard = seconds_now();
  try {
    if (!transfer.begun && !begin_body(transfer)) return 0;
    transfer.too_long = length > transfer.request.most_bytes - transfer.at;
    if (transfer.too_long) return 0;
    transfer.request.take({bytes, length});
    transfer.at += length;
    return length;
  } catch (...) {
    transfer.error = std::current_exception();
    return 0;
  }
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.stopped = transfer.request.stop();
  transfer.stalled = seconds_now() - transfer.last_heard > transfer.request.stall_seconds;
  return transfer.stopped || transfer.stalled ? 1 : 0;
}

std::string problem_of(const Transfer& transfer, CURLcode code, const char* detail) {
  const HttpRequest& request = transfer.request;
  if (transfer.too_long) return fmt::format("it sent more than the {} bytes expected", request.most_bytes);
  if (transfer.other_range)
    return fmt::format("it sent bytes from {} on, though those from {} on were asked for", transfer.range_at, request.from);
  if (code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR) {
    const long status = status_of(transfer.curl);
    return status == 200 || status == 206 ? "" : fmt::format("HTTP status {}", status);
  }
  if (code == CURLE_TOO_MANY_REDIRECTS) return fmt::format("it redirected more than {} times", kMostRedirects);
  if (transfer.stalled) return fmt::format("nothing came for {:g} s after byte {}", request.stall_seconds, transfer.at);
  if (code == CURLE_PARTIAL_FILE) return fmt::format("the connection ended after byte {}", transfer.at);
  return *detail != '\0' ? detail : libcurl().easy_strerror(code);
}

template <class T>
bool known(CURL* curl, CURLoption option, T value) {
  return libcurl().easy_setopt(curl, option, value) == CURLE_OK;
}
template <class T>
void set(CURL* curl, CURLoption option, T value) {
  if (!known(curl, option, value)) throw WorkError("libcurl does not know one of its options");
}

// Before 7.85 (Ubuntu 22.04) a mask by an older option, which later headers call deprecated.
void allow_web_only(CURL* curl) {
  constexpr auto kProtocols = static_cast<CURLoption>(181), kRedirects = static_cast<CURLoption>(182);
  for (const auto& [named, masked] :
       {std::pair{CURLOPT_PROTOCOLS_STR, kProtocols}, std::pair{CURLOPT_REDIR_PROTOCOLS_STR, kRedirects}})
    if (!known(curl, named, "http,https")) set(curl, masked, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}

}  // namespace

bool http_in_build() { return true; }

HttpAnswer http_get(const HttpRequest& request) {
  if (!libcurl().complete)
    throw InputError("libcurl.so.4 is not installed, and fetching needs it: apt-get install libcurl4 ca-certificates");
  static const CURLcode ready = libcurl().global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, decltype(Curl::easy_cleanup)> curl(libcurl().easy_init(), libcurl().easy_cleanup);
  if (ready != CURLE_OK || !curl) throw WorkError("libcurl cannot be started");
  Transfer transfer{request, curl.get()};
  char detail[CURL_ERROR_SIZE] = "";
  const std::string range = fmt::format("{}-", request.from);
  set(curl.get(), CURLOPT_URL, request.address.c_str());
  if (request.from > 0) set(curl.get(), CURLOPT_RANGE, range.c_str());
  allow_web_only(curl.get());
  set(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  set(curl.get(), CURLOPT_MAXREDIRS, static_cast<long>(kMostRedirects));
  set(curl.get(), CURLOPT_CONNECTTIMEOUT, static_cast<long>(kConnectSeconds));
  set(curl.get(), CURLOPT_FAILONERROR, 1L);
  set(curl.get(), CURLOPT_NOSIGNAL, 1L);
  set(curl.get(), CURLOPT_USERAGENT, "fairway");
  set(curl.get(), CURLOPT_ERRORBUFFER, detail);
  set(curl.get(), CURLOPT_HEADERFUNCTION, on_header);
  set(curl.get(), CURLOPT_HEADERDATA, &transfer);
  set(curl.get(), CURLOPT_WRITEFUNCTION, on_body);
  set(curl.get(), CURLOPT_WRITEDATA, &transfer);
  set(curl.get(), CURLOPT_NOPROGRESS, 0L);
  set(curl.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
  set(curl.get(), CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = libcurl().easy_perform(curl.get());
  if (transfer.error) std::rethrow_exception(transfer.error);
  const bool refused = code == CURLE_HTTP_RETURNED_ERROR && request.from > 0 && status_of(curl.get()) == 416;
  return {problem_of(transfer, code, detail), transfer.stopped, transfer.stalled, refused};
}

#else

bool http_in_build() { return false; }

HttpAnswer http_get(const HttpRequest&) { throw WorkError("built without libcurl"); }

#endif

std::string http_read(const std::string& address, uint64_t most_bytes, double stall_seconds) {
  std::string body;
  HttpRequest request{.address = address, .most_bytes = most_bytes, .stall_seconds = stall_seconds};
  request.take = [&](std::string_view bytes) { body += bytes; };
  if (const HttpAnswer answer = http_get(request); !answer.problem.empty())
    throw InputError(address + ": could not be fetched: " + answer.problem);
  return body;
}

}  // namespace fairway::fetch
