package main

import (
	"embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed newprovider
var providerTemplates embed.FS

var (
	packageForm = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

	// What go.mod takes as a path: elements that neither begin nor end with a dot, no
	// names that Windows keeps for itself, and a version only from v2 on. Source:
	// https://go.dev/ref/mod#go-mod-file-ident.
	moduleForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.+[A-Za-z0-9_-]+)*(/[A-Za-z0-9_~-]+(\.+[A-Za-z0-9_~-]+)*)*$`)
	noModule   = regexp.MustCompile(`(?i)(^|/)(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.[^/]*)?(/|$)|~[0-9]+(\.|/|$)|/v(0[0-9]*|1)$`)
)

// ownNames are those of this program's adapters and kit: keys of a second provider of
// one name would be taken for the first one's.
var ownNames = []string{"adyen", "atmostonce", "ietf", "pagerduty", "paypal", "providertest", "square", "stripe", "toss"}

// importedNames are what the scaffold's own files call their imports and parameters.
var importedNames = []string{"errors", "http", "httpadapter", "outbound", "rs", "testing", "main", "samekey", "codec", "provider", "samples", "pay"}

// scaffold is a package to be written.
type scaffold struct {
	name   string
	dir    string // of the package
	module string // path of the module to begin in dir, "" for none
}

func newProviderCommand() *cobra.Command {
	var s scaffold
	cmd := &cobra.Command{
		Use:   "new-provider NAME",
		Short: "Begin the adapter of a provider: a package that compiles, and a kit that says what to fill in",
		Long: `New-provider writes the package of an adapter, NAME.go and NAME_test.go. It compiles, and
its test fails with what to fill in; docs/adding-a-provider.md goes through it. The name
is part of every key that the adapter will make: choose it for ever.

The package goes into the folder NAME, or the one that --dir names, which belongs to a
module of yours. Outside of any, --module begins one there. No file is overwritten.`,
		Example: "  samekey new-provider acme\n" +
			"  samekey new-provider acme --dir internal/payments/acme\n" +
			"  samekey new-provider acme --module example.com/acme",
		Args: cobra.ExactArgs(1),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if s.name = args[0]; s.dir == "" {
				s.dir = s.name
			}
			return s.check()
		},
		RunE: run(func(cmd *cobra.Command, _ []string) error { return s.write(cmd.OutOrStdout()) }),
	}
	cmd.Flags().StringVar(&s.dir, "dir", "", "folder of the package (default: NAME)")
	cmd.Flags().StringVar(&s.module, "module", "", "path of a new module, where the folder is in none")
	return cmd
}

// check returns an error for what no package can be made of.
func (s *scaffold) check() error {
	switch {
	case token.IsKeyword(s.name):
		return fmt.Errorf("%q is a word of Go: choose another name", s.name)
	case !packageForm.MatchString(s.name):
		return fmt.Errorf("%.40q is no name of a package: write 1 to 32 lower-case letters and digits, as acme", s.name)
	case slices.Contains(ownNames, s.name):
		return fmt.Errorf("%q is the name of a package of samekey: choose another one", s.name)
	case slices.Contains(importedNames, s.name):
		return fmt.Errorf("%q is a name that the package itself uses: choose another one", s.name)
	case s.module != "" && (len(s.module) > 255 || !moduleForm.MatchString(s.module) || noModule.MatchString(s.module)):
		return fmt.Errorf("--module %.40q is no path of a module: write it as example.com/acme", s.module)
	}
	mod, err := moduleOf(s.dir)
	switch {
	case err != nil:
		return err
	case mod == "" && s.module == "":
		return errors.New("the folder is in no Go module: go into yours, or begin one with --module example.com/" + s.name)
	case mod != "" && s.module != "":
		return fmt.Errorf("the folder belongs to the module of %s: leave --module out", mod)
	}
	return nil
}

// moduleOf returns the go.mod that dir belongs to, "" if there is none.
func moduleOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		mod := filepath.Join(dir, "go.mod")
		if info, err := os.Stat(mod); err == nil && info.Mode().IsRegular() {
			return mod, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// write makes the package, and says on out what comes next.
func (s *scaffold) write(out io.Writer) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(s.dir, f.name)); err == nil {
			return fmt.Errorf("%s exists: choose another name or --dir, nothing was written", filepath.Join(s.dir, f.name))
		}
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := create(filepath.Join(s.dir, f.name), f.text); err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", filepath.Join(s.dir, f.name))
	}
	fmt.Fprintf(out, "\nNext, in %s:\n  go get github.com/seed-6b5e302b/samekey@latest && go mod tidy   # where the module has no samekey yet\n"+
		"  go test .\nIt says what to fill in. The way through it: docs/adding-a-provider.md\n", s.dir)
	return nil
}

// create writes a file that is not there yet.
func create(name string, text []byte) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists, and stays as it is", name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}

type scaffoldFile struct {
	name string
	text []byte
}

// files are the package's, with its name in place.
func (s *scaffold) files() (files []scaffoldFile, err error) {
	if s.module != "" {
		files = append(files, scaffoldFile{"go.mod", []byte("module " + s.module + "\n\ngo 1.26.0\n")})
	}
	for template, name := range map[string]string{"provider.go.txt": s.name + ".go", "provider_test.go.txt": s.name + "_test.go"} {
		text, err := providerTemplates.ReadFile("newprovider/" + template)
		if err != nil {
			return nil, err
		}
		text, err = format.Source([]byte(strings.ReplaceAll(string(text), "NAME", s.name)))
		if err != nil {
			return nil, err
		}
		files = append(files, scaffoldFile{name, text})
	}
	slices.SortFunc(files, func(a, b scaffoldFile) int { return strings.Compare(a.name, b.name) })
	return files, nil
}
