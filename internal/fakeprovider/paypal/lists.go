package paypal

import (
	"net/url"
	"strconv"
	"time"
)

// maxPage is how many items PayPal puts on a page at most.
const maxPage = 100

// page answers a list with the part that page and page_size ask for.
func (x *exec) page(name string, list []*record, show func(*exec, *record) object, size int) (reply, *failure) {
	page, size := x.queryInt("page", 1, 1_000_000), x.queryInt("page_size", size, maxPage)
	if x.err != nil {
		return reply{}, x.err
	}
	total := len(list)
	items := []object{}
	for _, r := range list[min(total, (page-1)*size):min(total, page*size)] {
		items = append(items, show(x, r))
	}
	return reply{body: object{name: items, "total_items": total, "total_pages": (total + size - 1) / size,
		"links": []object{x.selfLink()}}}, nil
}

// selfLink is the address of the request itself.
func (x *exec) selfLink() object {
	return x.link((&url.URL{Path: x.call.Request.Path, RawQuery: x.query.Encode()}).String(), "self", "GET")
}

// queryInt reads a whole number between 1 and limit. PayPal reads a page below
// 1, which some clients send, as the first.
func (x *exec) queryInt(name string, otherwise, limit int) int {
	s := x.query.Get(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > limit {
		x.bad("INVALID_PARAMETER_VALUE", name, "The number is out of range.")
		return otherwise
	}
	return max(n, 1)
}

// queryTime reads a time; it is zero where the parameter is not given.
func (x *exec) queryTime(name string) time.Time {
	s := x.query.Get(name)
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	x.bad("INVALID_PARAMETER_SYNTAX", name, "The time must be as in RFC 3339.")
	return time.Time{}
}
